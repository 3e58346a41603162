import MusterBase
import MusterCodecs
import MusterDevices
import MusterSystem
import MusterWire

/// The thread that captures one video stream of this node and encodes it, with one encoder per
/// layer.
///
/// Only the selected layers are encoded, and of each only the temporal layers that somebody gets.
/// While no layer is selected, the thread waits and a camera is closed.
package final class VideoPipeline: Sendable {
  private struct Controls {
    var targets: [EncoderTarget] = []
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
  private let controls: Monitor<Controls>
  private let deliver: @Sendable (EncodedFrame) -> Void
  private let failed: @Sendable (MusterError) -> Void

  /// The age from which a frame is discarded, because it was captured before a layer was selected.
  private static let staleness = Duration.milliseconds(250)

  /// Opens the source to determine its size and frame rate; a camera is closed again until needed.
  package static func open(
    _ stream: StreamID, _ specification: String,
    deliver: @escaping @Sendable (EncodedFrame) -> Void,
    failed: @escaping @Sendable (MusterError) -> Void
  ) async throws(DeviceError) -> VideoPipeline {
    let source = try await DeviceOpening.onThread { cancellation throws(DeviceError) in
      try VideoSources.open(specification, cancellation: cancellation)
    }
    return VideoPipeline(stream, specification, source, deliver: deliver, failed: failed)
  }

  private init(
    _ stream: StreamID, _ specification: String, _ source: any VideoSource,
    deliver: @escaping @Sendable (EncodedFrame) -> Void,
    failed: @escaping @Sendable (MusterError) -> Void
  ) {
    self.specification = specification
    self.deliver = deliver
    self.failed = failed
    let sizes = LayerLadder.sizes(for: source.size)
    let rate = source.framesPerSecond
    offer = StreamOffer(
      stream, isPattern: source.isPattern,
      layers: sizes.map { VideoLayer(size: $0, framesPerSecond: rate) })
    let held = VideoSources.isDevice(specification) ? nil : source
    controls = Monitor(Controls(source: held))
  }

  package var layers: [VideoLayer] { offer.layers }

  /// The target of the smallest layer if only this node's own preview shows it.
  package var previewTarget: EncoderTarget {
    let layer = layers[0]
    let bitrate = LayerLadder.bitrate(for: layer.size, framesPerSecond: layer.framesPerSecond)
    return EncoderTarget(layer: 0, kilobitsPerSecond: bitrate.target)
  }

  /// Encodes exactly these layers from now on at these bitrates, smallest first; none if empty.
  package func encode(_ targets: [EncoderTarget]) {
    controls.withLock { $0.targets = targets }
  }

  /// Makes the next frame of `layer` a keyframe.
  package func requestKeyframe(layer: Int) { controls.withLock { _ = $0.keyframes.insert(layer) } }

  package func start() -> WorkerThread { WorkerThread("muster-video") { self.run() } }

  package func stop() {
    controls.withLock { controls in
      controls.isStopped = true
      controls.source?.cancel()
    }
  }

  /// What to do with a captured frame.
  private struct Work {
    /// All layers that are being encoded.
    var targets: [EncoderTarget]
    /// Those of which this frame is encoded.
    var due: [EncoderTarget]
    /// The layers whose frame must be a keyframe.
    var keyframes: Set<Int>
  }

  /// The work for the captured frame of this number.
  private func takeWork(_ number: Int) -> Work {
    controls.withLock { controls in
      let due = controls.targets.filter {
        number.isMultiple(of: TemporalLayers.decimators[$0.temporalLayers - 1])
      }
      defer { controls.keyframes.subtract(due.map(\.layer)) }
      return Work(targets: controls.targets, due: due, keyframes: controls.keyframes)
    }
  }

  private func run() {
    var encoders = [VP8Encoder?](repeating: nil, count: layers.count)
    var number = 0
    do {
      while true {
        releaseUnused(&encoders)
        guard let source = try sourceWhenWanted() else { break }
        guard let captured = try source.next() else { break }
        number &+= 1
        let work = takeWork(number)
        guard !work.due.isEmpty, BootClock.now - captured.capturedAt < Self.staleness else {
          continue
        }
        try encode(captured, work, &encoders)
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
      guard controls.targets.isEmpty else { return false }
      if VideoSources.isDevice(specification) { controls.source = nil }
      return true
    }
    if isUnused { encoders = [VP8Encoder?](repeating: nil, count: layers.count) }
  }

  /// Waits until a layer is selected, then returns the video source, opened if necessary; nil when
  /// the pipeline is stopped.
  private func sourceWhenWanted() throws(DeviceError) -> (any VideoSource)? {
    guard controls.wait({ $0.isStopped || !$0.targets.isEmpty ? !$0.isStopped : nil }) else {
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
    _ captured: CapturedFrame, _ work: Work, _ encoders: inout [VP8Encoder?]
  ) throws {
    for layer in layers.indices where !work.targets.contains(where: { $0.layer == layer }) {
      encoders[layer] = nil  // frees the memory of an unused encoder
    }
    let smallest = work.due.first?.layer ?? 0
    // Largest layer first, because each smaller frame is scaled from the next larger one.
    var frame = captured.frame
    for layer in layers.indices.reversed() where layer >= smallest {
      frame = try scaled(frame, to: layers[layer].size)
      guard let target = work.due.first(where: { $0.layer == layer }) else { continue }
      let former = encoders[layer].flatMap {
        $0.temporalLayers == target.temporalLayers ? $0 : nil
      }
      let encoder = try former ?? makeEncoder(target)
      encoders[layer] = encoder
      encoder.setBitrate(target.kilobitsPerSecond)
      guard
        let encoded = try encoder.encode(
          frame, at: captured.capturedAt,
          forceKeyframe: former == nil || work.keyframes.contains(layer))
      else { continue }
      deliver(
        EncodedFrame(
          data: encoded.data, isKeyframe: encoded.isKeyframe, layer: layer,
          temporalLayer: encoded.temporalLayer, isReference: encoded.isReference,
          capturedAt: captured.capturedAt))
    }
  }

  private func makeEncoder(_ target: EncoderTarget) throws -> VP8Encoder {
    let layer = layers[target.layer]
    return try VP8Encoder(
      size: layer.size, framesPerSecond: layer.framesPerSecond,
      kilobitsPerSecond: target.kilobitsPerSecond, temporalLayers: target.temporalLayers)
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
