import Glibc
import MusterBase
import MusterCodecs
import MusterDevices
import MusterSystem

/// Devices without hardware, whose frames say which one they come from, and that count how many of
/// them are open.
final class SimulatedDevices: Sendable {
  /// The behaviour of a device when it is opened.
  enum Behaviour {
    case works
    case fails
    /// It cannot be opened while another one is open.
    case isExclusive
    /// Opening it takes until it is cancelled.
    case hangs
  }

  struct Count: Equatable, Sendable {
    var opened = 0
    var closed = 0
    /// The largest number that were open at once.
    var most = 0
  }

  static let failure = DeviceError(what: "it is broken", hint: "use another")

  private let state = Monitor(Count())

  var count: Count { state.withLock { $0 } }

  /// A camera with frames of this size, the numbers of whose test pattern are `number`.
  func camera(
    _ number: Int, _ size: VideoSize, isDevice: Bool = true, _ behaviour: Behaviour = .works
  ) -> VideoInput {
    input("camera \(number)", isDevice, behaviour) { Camera(number, size, $0, self) }
  }

  /// A microphone that hears a tone of this many Hz.
  func microphone(_ hertz: Int, _ behaviour: Behaviour = .works) -> AudioInput {
    input("microphone \(hertz)", true, behaviour) { Microphone(hertz, $0, self) }
  }

  /// A loudspeaker that passes its number on with each frame.
  func speaker(
    _ number: Int, _ behaviour: Behaviour = .works, heard: @escaping @Sendable (Int) -> Void
  ) -> AudioOutput {
    input("speaker \(number)", true, behaviour) { Speaker(number, heard, $0, self) }
  }

  private func input<Device: Sendable>(
    _ name: String, _ isDevice: Bool, _ behaviour: Behaviour,
    _ make: @escaping @Sendable (Cancellation) -> Device
  ) -> DeviceChoice<Device> {
    DeviceChoice(name, isDevice: isDevice) { [state] cancellation throws(DeviceError) in
      switch behaviour {
      case .works: break
      case .fails: throw Self.failure
      case .hangs:
        while cancellation.sleep(until: BootClock.now + .seconds(3600)) {}
        throw Self.failure
      case .isExclusive:
        if state.withLock({ $0.opened > $0.closed }) {
          throw DeviceError(what: "it is in use", hint: "wait", isBusy: true)
        }
      }
      state.withLock { count in
        count.opened += 1
        count.most = max(count.most, count.opened - count.closed)
      }
      return make(cancellation)
    }
  }

  /// Counts that a device has been closed; called by `deinit`.
  fileprivate func closed() { state.withLock { $0.closed += 1 } }

  private final class Camera: VideoSource {
    let format: VideoFormat
    private let number: Int
    private let cancellation: Cancellation
    private let devices: SimulatedDevices

    init(
      _ number: Int, _ size: VideoSize, _ cancellation: Cancellation, _ devices: SimulatedDevices
    ) {
      self.number = number
      self.cancellation = cancellation
      self.devices = devices
      format = VideoFormat(size: size, framesPerSecond: 30, isPattern: true)
    }

    deinit { devices.closed() }

    func next() -> CapturedFrame? {
      guard cancellation.sleep(until: BootClock.now + .milliseconds(1)) else { return nil }
      let (frame, now) = (I420Frame(size: format.size), BootClock.now)
      TestPattern.draw(number: UInt32(number), capturedAt: now, into: frame, flash: false, hue: 0)
      return CapturedFrame(frame: frame, capturedAt: now, format: format)
    }

    func cancel() { cancellation.cancel() }
  }

  private final class Microphone: AudioSource {
    let isLive = true
    private let hertz: Int
    private let cancellation: Cancellation
    private let devices: SimulatedDevices

    init(_ hertz: Int, _ cancellation: Cancellation, _ devices: SimulatedDevices) {
      self.hertz = hertz
      self.cancellation = cancellation
      self.devices = devices
    }

    deinit { devices.closed() }

    func next() -> CapturedAudio? {
      guard cancellation.sleep(until: BootClock.now + .milliseconds(1)) else { return nil }
      let pcm = (0..<AudioFormat.samplesPerFrame).map { index in
        Int16(8000 * sin(2 * .pi * Double(hertz * index) / 48_000))
      }
      return CapturedAudio(pcm: pcm, capturedAt: BootClock.now)
    }

    func cancel() { cancellation.cancel() }
  }

  private final class Speaker: AudioSink {
    let isLive = true
    let delay = Duration.milliseconds(10)
    private let number: Int
    private let heard: @Sendable (Int) -> Void
    private let cancellation: Cancellation
    private let devices: SimulatedDevices

    init(
      _ number: Int, _ heard: @escaping @Sendable (Int) -> Void, _ cancellation: Cancellation,
      _ devices: SimulatedDevices
    ) {
      self.number = number
      self.heard = heard
      self.cancellation = cancellation
      self.devices = devices
    }

    deinit { devices.closed() }

    func write(_ pcm: [Int16]) {
      guard cancellation.sleep(until: BootClock.now + .milliseconds(1)) else { return }
      heard(number)
    }

    func close() { cancellation.cancel() }
  }
}

extension SimulatedDevices {
  /// Waits until every device that was opened has been closed.
  func areClosed() async throws -> Bool {
    while count.opened != count.closed { try await Task.sleep(for: .milliseconds(1)) }
    return count.opened > 0
  }
}
