import MusterBase
import MusterWire

/// What a node gives up while it is short of CPU, in steps, least missed first. Audio is never
/// given up; the last step makes it plainer and 40 ms later.
public struct CPUAdaptation: Equatable, Sendable {
  /// The steps in the order in which they are taken, each in addition to those before.
  public enum Step: Int, CaseIterable, Comparable, Sendable {
    /// Everything is sent and received as requested.
    case nothing
    /// The layers below the largest are sent at half the frame rate, and encoders search less;
    /// datagrams gather for longer.
    case quickEncoding
    /// The videos behind the first are received at 15 frames per second at most.
    case othersSlower
    /// All videos are.
    case allSlower
    /// The videos behind the first are received small.
    case othersSmall
    /// All videos are, and the largest layer of this node's own is not sent.
    case allSmall
    /// The videos behind the first are received at 8 frames per second at most.
    case othersSlow
    /// The lower half of the ranks rests.
    case frontHalf
    /// Only the first three videos are received.
    case frontOnly
    /// Audio is sent in packets of three frames, which are a third of the work at both ends.
    case longPackets

    public static func < (a: Step, b: Step) -> Bool { a.rawValue < b.rawValue }

    var next: Step { Step(rawValue: rawValue + 1) ?? self }
    var previous: Step { Step(rawValue: rawValue - 1) ?? self }
  }

  /// The time after which a step that was taken back and had to be taken again is taken back once
  /// more; it doubles each time, up to `longestPause`.
  private static let firstPause = Duration.seconds(5)
  private static let longestPause = Duration.seconds(20)
  /// The time within which a return to a step shows that taking it back was too much.
  private static let relapse = Duration.seconds(3)

  private static let slower = VideoRequest(
    width: .max, height: .max, framesPerSecond: 15, why: .cpu)
  private static let small = VideoRequest(
    width: 320, height: 180, framesPerSecond: 15, why: .cpu)
  private static let slow = VideoRequest(width: 320, height: 180, framesPerSecond: 8, why: .cpu)
  private static let front = 3

  /// The step that holds.
  public private(set) var step = Step.nothing
  private var relaxedAt: Instant?
  private var pause = firstPause
  /// Until when no step is taken back.
  private var pausedUntil: Instant?

  public init() {}

  /// Takes what the detector says; returns whether the step changes.
  public mutating func take(_ verdict: CPUOveruseDetector.Verdict, at now: Instant) -> Bool {
    let former = step
    switch verdict {
    case .overused(let isSevere):
      if let relaxedAt, now - relaxedAt < Self.relapse {
        pausedUntil = now + pause
        pause = min(pause + pause, Self.longestPause)
      }
      relaxedAt = nil
      step = isSevere ? step.next.next : step.next
    case .underused:
      guard step > .nothing, pausedUntil.map({ $0 <= now }) ?? true else { break }
      relaxedAt = now
      step = step.previous
    }
    return step != former
  }

  /// Lets steps be taken back at once, since there is less to do: somebody has left.
  public mutating func hasLessToDo() { (pausedUntil, pause) = (nil, Self.firstPause) }

  // MARK: What this node receives

  /// The time for which datagrams may gather in a call: fewer wake-ups take less CPU time.
  public var coalescing: Duration { .milliseconds(step > .nothing ? 8 : 3) }

  /// The most that this node requests of the video of this rank, counted from 0, among `count`; nil
  /// for no limit.
  public func limit(ofRank rank: Int, among count: Int) -> VideoRequest? {
    let isFirst = rank == 0
    if step >= .frontOnly, rank >= Self.front { return .shortOfCPU }
    if step >= .frontHalf, rank >= max((count + 1) / 2, Self.front) { return .shortOfCPU }
    if step >= .othersSlow, !isFirst { return Self.slow }
    if step >= .allSmall || step >= .othersSmall && !isFirst { return Self.small }
    if step >= .allSlower || step >= .othersSlower && !isFirst { return Self.slower }
    return nil
  }

  // MARK: What this node sends

  /// The most that is sent of a stream of so many layers where `requested` is asked for.
  public func limited(_ requested: LayerStep, of layers: Int) -> LayerStep {
    var step = requested
    if self.step >= .allSmall, layers > 1, step.layer == layers - 1 {
      step = LayerStep(layer: step.layer - 1, temporalLayers: step.temporalLayers)
    }
    if self.step >= .quickEncoding, step.layer < layers - 1 {
      step.temporalLayers = min(step.temporalLayers, Self.halfRate)
    }
    return step
  }

  /// Whether audio is sent in long packets to those who know them.
  public var sendsLongPackets: Bool { step >= .longPackets }

  /// Whether encoders work fast rather than well.
  public var isEncodingQuickly: Bool { step >= .quickEncoding }

  /// The temporal layers up to half the frame rate.
  private static let halfRate = 2
}
