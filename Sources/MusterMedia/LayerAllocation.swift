import MusterBase

/// The layers of a video stream that its receivers get, and the bitrates at which they are encoded.
///
/// The receiver with the most bandwidth decides the bitrate of its layer. Another one gets of that
/// layer what it has room for, or a smaller layer; it never changes what the first one gets.
public struct LayerAllocation: Equatable, Sendable {
  /// A receiver of the stream.
  public struct Receiver: Equatable, Sendable {
    /// The most that it requests.
    public var requested: LayerStep
    /// The bandwidth that its path has for the stream in kbit/s of IP packets; nil if unlimited.
    public var bandwidth: Int?
    /// The step that it gets, or is about to get; nil if none.
    public var current: LayerStep?
    /// Whether it may get more than `current`, even if that leaves little room.
    public var mayRise: Bool
    /// Whether the bandwidth is a share of the uplink, which does not change by itself.
    public var isShare: Bool

    public init(
      requested: LayerStep, bandwidth: Int?, current: LayerStep? = nil, mayRise: Bool = true,
      isShare: Bool = false
    ) {
      self.requested = requested
      self.bandwidth = bandwidth
      self.current = current
      self.mayRise = mayRise
      self.isShare = isShare
    }
  }

  /// The margin in percent of a step above the current one, so that the receiver does not soon have
  /// to fall back (libwebrtc's `simulcast_rate_allocator.cc`).
  public static let riseMargin = 20
  /// The same where the receiver otherwise may not rise yet: that waits for what the last rise does
  /// to a path that is near to its limit. (A share of the uplink says little about that.)
  private static let farMargin = 100
  /// The excess in percent of a step over the bandwidth that does not yet make the receiver fall: a
  /// frame of the highest temporal layer is then left out now and then (`FrameAdmission`).
  private static let fallMargin = 10

  /// The step of each receiver; nil if the path has no room even for stills.
  public private(set) var steps: [LayerStep?]
  /// The bitrate of each layer in kbit/s; nil if nobody gets it.
  public private(set) var bitrates: [Int?]

  private let ladder: [LayerLadder.Bitrate]
  private let framesPerSecond: Int

  /// Allocates the layers of `ladder`, smallest first, at the frame rate of the source.
  public init(
    _ ladder: [LayerLadder.Bitrate], framesPerSecond: Int, receivers: [Receiver]
  ) {
    self.ladder = ladder
    self.framesPerSecond = framesPerSecond
    steps = receivers.map { _ in nil }
    bitrates = ladder.map { _ in nil }
    let order = receivers.indices.sorted { a, b in
      let (x, y) = (receivers[a].bandwidth ?? .max, receivers[b].bandwidth ?? .max)
      return x == y ? a < b : x > y
    }
    for index in order {
      guard let step = step(for: receivers[index]) else { continue }
      steps[index] = step
      bitrates[step.layer] =
        bitrates[step.layer] ?? bitrate(of: step, filling: receivers[index].bandwidth)
    }
  }

  private func step(for receiver: Receiver) -> LayerStep? {
    let highest = receiver.requested
    guard let bandwidth = receiver.bandwidth else { return highest }
    return LayerStep.steps(upTo: highest).first { step in
      let isRise = receiver.current.map { step > $0 } ?? true
      // A rise to a larger layer is to all that is requested of it: the next one may be far off.
      let isLarger = step.layer > receiver.current?.layer ?? 0
      let isWhole = step.temporalLayers == highest.temporalLayers
      guard !isRise || (receiver.mayRise || !receiver.isShare) && (isWhole || !isLarger)
      else { return false }
      let bitrate = bitrates[step.layer] ?? ladder[step.layer].min
      let needed = step.bandwidth(ofLayerAt: bitrate, framesPerSecond: framesPerSecond)
      let percent =
        if !isRise {
          100 - Self.fallMargin
        } else if !receiver.mayRise {
          100 + Self.farMargin
        } else { receiver.isShare ? 100 : 100 + Self.riseMargin }
      return needed * percent <= bandwidth * 100
    }
  }

  /// The bitrate of a layer for the receiver that has the most bandwidth of those that get it.
  private func bitrate(of step: LayerStep, filling bandwidth: Int?) -> Int {
    let limits = ladder[step.layer]
    guard let bandwidth else { return limits.target }
    let filling = step.bitrate(filling: bandwidth, framesPerSecond: framesPerSecond)
    return min(max(filling, limits.min), limits.max)
  }
}
