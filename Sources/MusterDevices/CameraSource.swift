import CMusterShims
import CV4L2
import MusterBase
import MusterCodecs
import MusterSystem

/// A V4L2 camera, opened through libv4l2, which converts the formats that V4L2 alone cannot
/// deliver.
final class CameraSource: VideoSource, @unchecked Sendable {
  let format: VideoFormat

  private let path: String
  private let cancellation: Cancellation
  private let pool: FramePool
  private let pixelFormat: PixelFormat
  private var camera: muster_camera
  private var last = Instant.zero

  /// The maximum time of one wait for a frame; long exposures take only a fraction of a second.
  /// After three waits without a frame, the camera is considered to have failed.
  private static let patience = Duration.seconds(5)
  /// The camera is considered to have failed after this many consecutive damaged frames, 5 s at
  /// 30 frames per second. A wait without a frame counts as a third of the limit.
  private static let toleratedFailures = 150
  static let maximumModes = 512

  /// Opens the camera at `path`; nil opens the first camera that can be opened.
  init(
    path: String?, wanted: VideoSize, framesPerSecond wantedRate: Int, cancellation: Cancellation
  ) throws(DeviceError) {
    let (descriptor, path) = try Self.open(path)
    self.path = path
    self.cancellation = cancellation
    guard
      let mode = Self.bestMode(descriptor, wanted: wanted, framesPerSecond: wantedRate)
    else {
      v4l2_close(descriptor)
      throw DeviceError(
        what: "\(path) offers no pixel format that can be used",
        hint: "see 'muster devices', or use --video test")
    }
    camera = muster_camera()
    let error = muster_camera_start(descriptor, mode, &camera)
    guard error == 0 else { throw Self.failure(path, -error) }
    let granted = CameraMode(camera.mode)
    guard let pixelFormat = CameraMode.format(camera.mode.fourcc), granted.size.pixels > 0,
      granted.size.pixels <= VideoSources.maximumPixels
    else {
      muster_camera_close(&camera)
      throw DeviceError(
        what: "\(path) insists on \(granted)", hint: "see 'muster devices', or use --video test")
    }
    self.pixelFormat = pixelFormat
    format = VideoFormat(
      size: granted.size,
      framesPerSecond: min(max(Int(granted.framesPerSecond.rounded()), 1), 120))
    pool = FramePool(size: granted.size)
  }

  deinit { muster_camera_close(&camera) }

  func next() throws(DeviceError) -> CapturedFrame? {
    var failures = 0
    while failures < Self.toleratedFailures {
      var filled = muster_camera_frame()
      let error = muster_camera_dequeue(
        &camera, cancellation.descriptor, Int32(Self.patience.inMilliseconds), &filled)
      if error == -ECANCELED { return nil }
      if error == -EAGAIN {
        // Either a spurious wake-up or no frame for `patience`; only a few of both are tolerated.
        failures += Self.toleratedFailures / 3
        continue
      }
      guard error == 0 else { throw Self.failure(path, -error) }
      let result = image(filled)
      let returned = muster_camera_requeue(&camera, filled.index)
      guard returned == 0 else { throw Self.failure(path, -returned) }
      if let result { return result }
      failures += 1
    }
    throw DeviceError(
      what: "\(path) delivers no frames", hint: "unplug it and plug it in again")
  }

  func cancel() { cancellation.cancel() }

  /// Converts a filled buffer; nil for a damaged frame, as USB cameras deliver at the start.
  private func image(_ filled: muster_camera_frame) -> CapturedFrame? {
    guard filled.is_damaged == 0, filled.length > 0 else { return nil }
    let bytes = UnsafeRawBufferPointer(start: filled.data, count: Int(filled.length))
    let frame = pool.frame()
    let stride = pixelFormat == .mjpeg ? 0 : Int(camera.stride)
    guard PixelConversion.convert(bytes, format: pixelFormat, stride: stride, into: frame) else {
      return nil
    }
    return CapturedFrame(
      frame: frame, capturedAt: captureTime(filled.monotonic_nanoseconds), format: format)
  }

  /// The driver's timestamp on the boot clock, or the current time if the timestamp is in the
  /// future or at least 1 s old; never before the previous capture time.
  ///
  /// Some drivers report the expected end of exposure: timestamps 14 to 68 ms ahead were observed.
  private func captureTime(_ monotonic: Int64) -> Instant {
    let now = BootClock.now
    var time = now
    if monotonic > 0 {
      let stamped = BootClock.instant(monotonic: monotonic)
      if stamped <= now, now - stamped < .seconds(1) { time = stamped }
    }
    if time <= last { time = min(now, last + .microseconds(1)) }
    last = time
    return time
  }

  static func bestMode(
    _ descriptor: Int32, wanted: VideoSize, framesPerSecond: Int
  ) -> muster_camera_mode? {
    var best: (mode: muster_camera_mode, cost: Double)?
    for mode in modes(descriptor) {
      guard
        let cost = CameraMode.cost(mode, wanted: wanted, framesPerSecond: framesPerSecond)
      else { continue }
      if best.map({ cost < $0.cost }) ?? true { best = (mode, cost) }
    }
    guard var mode = best?.mode else { return nil }
    // In a faster mode the lower rate is requested; the driver reports the rate that it chose.
    if CameraMode(mode).framesPerSecond > Double(framesPerSecond) {
      mode.numerator = 1
      mode.denominator = UInt32(framesPerSecond)
    }
    return mode
  }

  static func modes(_ descriptor: Int32) -> [muster_camera_mode] {
    [muster_camera_mode](unsafeUninitializedCapacity: maximumModes) { buffer, count in
      count = max(
        0, Int(muster_camera_modes(descriptor, buffer.baseAddress, Int32(buffer.count))))
    }
  }

  private static func open(_ path: String?) throws(DeviceError) -> (Int32, String) {
    if let path {
      let descriptor = muster_camera_open(path)
      guard descriptor >= 0 else { throw failure(path, -descriptor) }
      return (descriptor, path)
    }
    var refusal: DeviceError?
    for path in DeviceList.cameraPaths() {
      let descriptor = muster_camera_open(path)
      if descriptor >= 0 { return (descriptor, path) }
      // A camera also has metadata device nodes, which cannot capture video and are skipped.
      if descriptor != -ENODEV { refusal = refusal ?? failure(path, -descriptor) }
    }
    throw refusal
      ?? DeviceError(what: "no camera found", hint: "plug one in, or use --video test")
  }

  private static func failure(_ path: String, _ code: Int32) -> DeviceError {
    let (what, hint) =
      switch code {
      case ENOENT: ("no camera at \(path)", "see 'muster devices', or use --video test")
      case ENODEV, EPIPE, EIO: ("\(path) is gone", "plug the camera in again")
      case EBUSY: ("\(path) is in use", "close the program that uses the camera")
      case EACCES, EPERM:
        ("\(path) may not be used", "add yourself to the group 'video' and log in again")
      case ENOTTY, EINVAL:
        ("\(path) is not a camera", "see 'muster devices', or use --video test")
      default: ("\(path): \(SystemError.text(of: code))", "see 'muster devices'")
      }
    return DeviceError(what: what, hint: hint, isBusy: code == EBUSY)
  }
}
