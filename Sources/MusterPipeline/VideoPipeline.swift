import MusterBase
import MusterCodecs
import MusterDevices
import MusterWire

/// The thread that captures one video stream of this node and encodes it, with one encoder per
/// layer.
///
/// Only the selected layers are encoded. While no layer is selected, the thread waits and a camera
/// is closed.
package final class VideoPipeline: Sendable {
  private struct Controls {
    var wanted: [Int] = []
    var keyframes: Set<Int> = []
    var isStopped = false
    /// The open source; nil while a device is not in use.
    var source: (any VideoSource)?
  }

  /// The offer of the stream, which the presence contains.
  package let offer: StreamOffer
  /// The limiter of the frames queued for the event loop.
  package let backlog = FrameBacklog()

  private let specification: String
  private let bitrates: [Int]
  private let controls: Monitor<Controls>
  private let deliver: @Sendable (EncodedFrame) -> Void
  private let failed: @Sendable (MusterError) -> Void

  /// The age from which a frame is discarded, because it was captured before a layer was selected.
  private static let staleness = Duration.milliseconds(250)

  /// Opens the source to determine its size and frame rate; a camera is closed again until needed.
  /// `bitrateCap` is for the largest layer, in kbit/s; nil selects the maximum of `LayerLadder`.
  package init(
    _ stream: StreamID, _ specification: String, bitrateCap: Int?,
    deliver: @escaping @Sendable (EncodedFrame) -> Void,
    failed: @escaping @Sendable (MusterError) -> Void
  ) throws(DeviceError) {
    let source = try VideoSources.open(specification)
    self.specification = specification
    self.deliver = deliver
    self.failed = failed
    let sizes = LayerLadder.sizes(for: source.size)
    let rate = source.framesPerSecond
    offer = StreamOffer(
      stream, isPattern: source.isPattern,
      layers: sizes.map { VideoLayer(size: $0, framesPerSecond: rate) })
    bitrates = sizes.indices.map { index in
      let ladder = LayerLadder.bitrate(for: sizes[index], framesPerSecond: rate)
      guard index == sizes.count - 1 else { return ladder.target }
      return bitrateCap ?? ladder.max
    }
    let held = VideoSources.isDevice(specification) ? nil : source
    controls = Monitor(Controls(source: held))
  }

  package var layers: [VideoLayer] { offer.layers }

  /// Selects the layers to encode from now on by index, 0 for the smallest; empty for none.
  package func encode(layers: [Int]) { controls.withLock { $0.wanted = layers } }

  /// Makes the next frame of `layer` a keyframe.
  package func requestKeyframe(layer: Int) { controls.withLock { _ = $0.keyframes.insert(layer) } }

  package func start() -> WorkerThread { WorkerThread("muster-video") { self.run() } }

  package func stop() {
    controls.withLock { controls in
      controls.isStopped = true
      controls.source?.cancel()
    }
  }

  /// The layers to encode, and the layers whose next frame must be a keyframe.
  private typealias Work = (wanted: [Int], keyframes: Set<Int>)

  private func takeWork() -> Work {
    controls.withLock { controls in
      defer { controls.keyframes.subtract(controls.wanted) }
      return (controls.wanted, controls.keyframes)
    }
  }

  private func run() {
    var encoders = [VP8Encoder?](repeating: nil, count: layers.count)
    do {
      while true {
        releaseUnused(&encoders)
        guard let source = try sourceWhenWanted() else { break }
        guard let captured = try source.next() else { break }
        let work = takeWork()
        guard !work.wanted.isEmpty, BootClock.now - captured.capturedAt < Self.staleness else {
          continue
        }
        try encode(captured, work.wanted, work.keyframes, &encoders)
      }
    } catch let error as DeviceError {
      failed(MusterError(error.what, hint: error.hint))
    } catch {
      failed(MusterError("cannot encode video (\(error))", hint: "try another source"))
    }
    controls.withLock { $0.source = nil }
  }

  /// Frees the encoders and closes the capture device if no layer is selected; other sources stay
  /// open.
  private func releaseUnused(_ encoders: inout [VP8Encoder?]) {
    let isUnused = controls.withLock { controls in
      guard controls.wanted.isEmpty else { return false }
      if VideoSources.isDevice(specification) { controls.source = nil }
      return true
    }
    if isUnused { encoders = [VP8Encoder?](repeating: nil, count: layers.count) }
  }

  /// Waits until a layer is selected, then returns the video source, opened if necessary; nil when
  /// the pipeline is stopped.
  private func sourceWhenWanted() throws(DeviceError) -> (any VideoSource)? {
    guard controls.wait({ $0.isStopped || !$0.wanted.isEmpty ? !$0.isStopped : nil }) else {
      return nil
    }
    if let source = controls.withLock({ $0.source }) { return source }
    let source = try VideoSources.open(specification)
    controls.withLock { controls in
      controls.source = source
      if controls.isStopped { source.cancel() }
    }
    return source
  }

  private func encode(
    _ captured: CapturedFrame, _ wanted: [Int], _ keyframes: Set<Int>,
    _ encoders: inout [VP8Encoder?]
  ) throws {
    // Largest layer first, because each smaller frame is scaled from the next larger one.
    var frame = captured.frame
    for layer in layers.indices.reversed() where layer >= (wanted.min() ?? 0) {
      frame = try scaled(frame, to: layers[layer].size)
      guard wanted.contains(layer) else {
        encoders[layer] = nil  // frees the memory of an unused encoder
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
