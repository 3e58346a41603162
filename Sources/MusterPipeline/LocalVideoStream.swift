import MusterBase
import MusterCodecs
import MusterDevices
import MusterSystem
import MusterWire

/// One video stream of this node, whose source can be replaced while it runs, and the thread that
/// captures and encodes it.
///
/// Only the selected layers are encoded, and of each only the temporal layers that somebody gets.
/// While no layer is selected, the thread waits and a camera is closed.
package final class LocalVideoStream: Sendable {
  /// Something that the stream delivers. The formats are numbered, so that targets and frames of a
  /// former one can be told from those of the current one.
  package enum Output: Sendable {
    /// The next frames have another format; nil without a source. Nothing is encoded before
    /// `encode` is called for it.
    case format(VideoFormat?, revision: Int)
    case frame(EncodedFrame, revision: Int)
    /// The mean time from capture to the end of encoding of so many frames, as a share of the frame
    /// interval.
    case pace(Double, frames: Int)
    case failed(MusterError)
  }

  private struct Controls {
    var format = FormatFollower()
    var revision = 0
    var targets: [EncoderTarget] = []
    var keyframes: Set<Int> = []

    /// Notes that the offered format has changed; returns what to deliver.
    mutating func formatChanged() -> Output {
      revision += 1
      (targets, keyframes) = ([], [])
      return .format(format.offered, revision: revision)
    }
  }

  /// The stream's id.
  package let id: StreamID
  /// The limiter of delivered frames, to be told when one has been taken.
  package let backlog = FrameBacklog()

  private let slot: DeviceSlot<any VideoSource>
  private let controls: Monitor<Controls>
  private let deliver: @Sendable (Output) -> Void

  /// The age from which a frame is discarded, because it was captured before a layer was selected.
  private static let staleness = Duration.milliseconds(250)

  /// A stream without a source. `deliver` is called on any thread.
  package init(_ id: StreamID, deliver: @escaping @Sendable (Output) -> Void) {
    let controls = Monitor(Controls())
    self.id = id
    self.deliver = deliver
    self.controls = controls
    slot = DeviceSlot { report, source in
      if let source { Self.replaced(with: source.format, controls, deliver) }
      if report == .empty { Self.replaced(with: nil, controls, deliver) }
      if let error = report.error { deliver(.failed(MusterError(error))) }
    }
  }

  /// The current format and its number.
  package var format: (format: VideoFormat?, revision: Int) {
    controls.withLock { ($0.format.offered, $0.revision) }
  }

  /// Opens the first source, to find out its format; a camera is closed again until it is needed.
  package func open(_ input: VideoInput) async throws(DeviceError) { try await slot.open(input) }

  /// Replaces the source; nil for none. The former one goes on until the new one has been opened.
  package func replace(with input: VideoInput?) { slot.replace(with: input) }

  /// Encodes exactly these layers from now on at these bitrates, smallest first; none if empty.
  /// Without effect if `revision` is not that of the last format.
  package func encode(_ targets: [EncoderTarget], revision: Int) {
    let isCurrent = controls.withLock { controls in
      guard controls.revision == revision else { return false }
      controls.targets = targets
      return true
    }
    if isCurrent { slot.want(!targets.isEmpty) }
  }

  /// Makes the next frame of `layer` a keyframe.
  package func requestKeyframe(layer: Int) { controls.withLock { _ = $0.keyframes.insert(layer) } }

  /// Starts the thread; call once.
  package func start() -> WorkerThread { WorkerThread("muster-video") { self.run() } }

  /// Ends the thread and closes the source.
  package func stop() { slot.stop() }

  private static func replaced(
    with format: VideoFormat?, _ controls: Monitor<Controls>,
    _ deliver: @Sendable (Output) -> Void
  ) {
    let change = controls.withLock { controls in
      controls.format.replace(with: format, at: BootClock.now)
        ? controls.formatChanged() : nil
    }
    if let change { deliver(change) }
  }

  // MARK: The thread

  private func run() {
    WorkerThread.lowerPriority()
    var encoder = SimulcastEncoder()
    var pace = EncodingPace()
    var turn: DeviceSlot<any VideoSource>.Turn?
    var number = 0
    var last = Instant.zero
    while slot.next(&turn, idle: { encoder.release() }) {
      do throws(DeviceError) {
        guard let captured = try turn?.device.next() else {
          slot.ended(turn)
          continue
        }
        slot.works(&turn)
        // The clock of a stream goes forward only, whatever the clocks of its sources do.
        guard captured.capturedAt > last else { continue }
        last = captured.capturedAt
        number &+= 1
        encode(captured, number, &encoder, &pace)
      } catch { slot.failed(turn, error) }
    }
  }

  private func encode(
    _ captured: CapturedFrame, _ number: Int, _ encoder: inout SimulcastEncoder,
    _ pace: inout EncodingPace
  ) {
    let takenAt = BootClock.now
    pace.took(takenAt - captured.capturedAt, at: takenAt)
    let (work, revision, format, change) = controls.withLock { controls in
      let hasChanged = controls.format.take(captured.format, at: captured.capturedAt)
      let change = hasChanged ? controls.formatChanged() : nil
      return (
        takeWork(number, &controls), controls.revision, controls.format.offered, change
      )
    }
    if let change { deliver(change) }
    // A frame from before a layer was selected says nothing of the encoders.
    guard let format, !work.due.isEmpty, takenAt - captured.capturedAt < Self.staleness else {
      return
    }
    defer {
      let now = BootClock.now
      if let report = pace.encoded(
        now - captured.capturedAt, framesPerSecond: format.framesPerSecond, at: now)
      {
        deliver(.pace(report.share, frames: report.frames))
      }
    }
    encoder.setFormat(format)
    do {
      try encoder.encode(captured, work) { handOver($0, revision) }
    } catch {
      encoder.release()
      slot.replace(with: nil)
      deliver(.failed(MusterError("cannot encode video (\(error))", hint: "try another source")))
    }
  }

  /// Delivers an encoded frame. To bound the queue when the loop is slow, non-reference frames are
  /// dropped first, then all frames up to the next keyframe, which is requested.
  private func handOver(_ frame: EncodedFrame, _ revision: Int) {
    if backlog.admits(frame) {
      deliver(.frame(frame, revision: revision))
    } else if frame.isReference {
      requestKeyframe(layer: frame.layer)
    }
  }

  /// The work for the captured frame of this number.
  private func takeWork(_ number: Int, _ controls: inout Controls) -> SimulcastEncoder.Work {
    let due = controls.targets.filter {
      number.isMultiple(of: TemporalLayers.decimators[$0.temporalLayers - 1])
    }
    defer { controls.keyframes.subtract(due.map(\.layer)) }
    return SimulcastEncoder.Work(
      targets: controls.targets, due: due, keyframes: controls.keyframes)
  }
}
