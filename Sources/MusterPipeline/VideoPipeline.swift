import MusterBase
import MusterCodecs
import MusterDevices
import MusterWire

/// One capture, one encoder per layer: the thread that makes this node's pictures.
///
/// Encodes only the layers it is told to; with none wanted it waits and the source rests.
package final class VideoPipeline: Sendable {
  private struct Controls {
    package var wanted: [Int] = []
    package var keyframes: Set<Int> = []
    package var isStopped = false
  }

  /// The layers on offer, smallest first.
  package let layers: [VideoLayer]
  package let isPattern: Bool

  private let source: any VideoSource
  private let bitrates: [Int]
  private let controls = Monitor(Controls())
  private let deliver: @Sendable (EncodedFrame) -> Void
  private let failed: @Sendable (MusterError) -> Void

  /// A picture older than this was captured before anyone asked for it.
  private static let staleness = Duration.milliseconds(250)

  package init(
    source: any VideoSource, bitrateCap: Int?,
    deliver: @escaping @Sendable (EncodedFrame) -> Void,
    failed: @escaping @Sendable (MusterError) -> Void
  ) {
    self.source = source
    self.deliver = deliver
    self.failed = failed
    isPattern = source.isPattern
    let sizes = LayerLadder.sizes(for: source.size)
    let rate = source.framesPerSecond
    layers = sizes.map { VideoLayer(size: $0, framesPerSecond: rate) }
    bitrates = sizes.indices.map { index in
      let ladder = LayerLadder.bitrate(for: sizes[index], framesPerSecond: rate)
      guard index == sizes.count - 1 else { return ladder.target }
      return bitrateCap ?? ladder.max
    }
  }

  /// Chooses the layers to encode from here on.
  package func encode(layers: [Int]) { controls.withLock { $0.wanted = layers } }

  /// Makes the next picture of `layer` a keyframe.
  package func requestKeyframe(layer: Int) { controls.withLock { _ = $0.keyframes.insert(layer) } }

  package func start() -> WorkerThread { WorkerThread("muster-video") { self.run() } }

  package func stop() {
    controls.withLock { $0.isStopped = true }
    source.cancel()
  }

  /// Layers to encode and keyframes due; nil when stopped.
  private func nextWork() -> (wanted: [Int], keyframes: Set<Int>)? {
    controls.wait { controls -> (wanted: [Int], keyframes: Set<Int>)?? in
      if controls.isStopped { return .some(nil) }
      guard !controls.wanted.isEmpty else { return nil }
      defer { controls.keyframes.subtract(controls.wanted) }
      return .some((controls.wanted, controls.keyframes))
    }
  }

  private func run() {
    var encoders = [VP8Encoder?](repeating: nil, count: layers.count)
    do {
      while controls.wait({ $0.isStopped || !$0.wanted.isEmpty ? !$0.isStopped : nil }) {
        guard let captured = try source.next() else { break }
        guard BootClock.now - captured.capturedAt < Self.staleness else { continue }
        guard let work = nextWork() else { break }
        try encode(captured, work.wanted, work.keyframes, &encoders)
      }
    } catch let error as DeviceError {
      failed(MusterError(error.what, hint: error.hint))
    } catch {
      failed(MusterError("cannot encode video (\(error))", hint: "try another --video"))
    }
  }

  private func encode(
    _ captured: CapturedFrame, _ wanted: [Int], _ keyframes: Set<Int>,
    _ encoders: inout [VP8Encoder?]
  ) throws {
    // Largest first: each smaller picture is made from the one above it.
    var frame = captured.frame
    for layer in layers.indices.reversed() where layer >= (wanted.min() ?? 0) {
      frame = try scaled(frame, to: layers[layer].size)
      guard wanted.contains(layer) else {
        encoders[layer] = nil  // nobody wants it: give its memory back
        continue
      }
      let isNew = encoders[layer] == nil
      let encoder = try encoders[layer] ?? makeEncoder(layer)
      encoders[layer] = encoder
      guard
        let encoded = try encoder.encode(
          frame, at: captured.capturedAt, forceKeyframe: isNew || keyframes.contains(layer))
      else { continue }
      deliver(
        EncodedFrame(
          data: encoded.data, isKeyframe: encoded.isKeyframe, layer: layer,
          temporalLayer: encoded.temporalLayer, isReference: encoded.isReference,
          capturedAt: captured.capturedAt))
    }
    for layer in layers.indices where layer < (wanted.min() ?? 0) { encoders[layer] = nil }
  }

  private func makeEncoder(_ layer: Int) throws -> VP8Encoder {
    try VP8Encoder(
      size: layers[layer].size, framesPerSecond: layers[layer].framesPerSecond,
      kilobitsPerSecond: bitrates[layer])
  }

  private func scaled(_ frame: I420Frame, to size: VideoSize) throws -> I420Frame {
    guard frame.size != size else { return frame }
    let target = I420Frame(size: size)
    guard PixelConversion.scale(frame, into: target) else {
      throw CodecError("cannot scale \(frame.size) to \(size)")
    }
    return target
  }
}
