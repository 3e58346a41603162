import CALSA
import CMusterShims
import CV4L2
import MusterBase
import MusterSystem

/// The cameras and ALSA devices of this machine, for `muster devices`.
public enum DeviceList {
  /// A V4L2 camera.
  public struct Camera: Equatable, Sendable {
    /// The device node, such as `/dev/video0`.
    public let path: String
    /// The driver's name for the camera.
    public let name: String
    /// The capture modes listed by the driver.
    public let modes: [CameraMode]
  }

  /// An ALSA PCM device.
  public struct SoundDevice: Equatable, Sendable {
    /// The ALSA name, accepted by `--audio mic:` and `--speaker`.
    public let name: String
    /// ALSA's description, in one line.
    public let description: String
    /// Whether the device supports capture.
    public let canCapture: Bool
    /// Whether the device supports playback.
    public let canPlay: Bool
  }

  /// All cameras that can be opened.
  public static func cameras() -> [Camera] {
    cameraPaths().compactMap { path in
      let descriptor = muster_camera_open(path)
      guard descriptor >= 0 else { return nil }
      defer { v4l2_close(descriptor) }
      var name = [CChar](repeating: 0, count: 64)
      _ = muster_camera_name(descriptor, &name, Int32(name.count))
      let bytes = name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:))
      let text = String(decoding: bytes, as: UTF8.self)
      return Camera(
        path: path, name: DisplayText.sanitized(text, limit: 64),
        modes: CameraSource.modes(descriptor).map(CameraMode.init))
    }
  }

  /// ALSA's list without the entries for conversion plugins and for sound servers, which may not be
  /// installed. `default` uses an installed sound server.
  public static func soundDevices() -> [SoundDevice] {
    muster_silence_alsa()
    var hints: UnsafeMutablePointer<UnsafeMutableRawPointer?>?
    guard snd_device_name_hint(-1, "pcm", &hints) == 0, let hints else { return [] }
    defer { snd_device_name_free_hint(hints) }
    var result = [SoundDevice]()
    var next = hints
    while let hint = next.pointee {
      next += 1
      guard let name = text(hint, "NAME"), name == "default" || name.contains("CARD=") else {
        continue
      }
      let direction = text(hint, "IOID")
      let description = (text(hint, "DESC") ?? "").split(separator: "\n").joined(separator: ", ")
      result.append(
        SoundDevice(
          name: name, description: DisplayText.sanitized(description, limit: 160),
          canCapture: direction != "Output", canPlay: direction != "Input"))
    }
    return result
  }

  /// The paths `/dev/videoN` in numerical order.
  static func cameraPaths() -> [String] {
    guard let directory = opendir("/dev") else { return [] }
    defer { closedir(directory) }
    var numbers = [Int]()
    while let entry = readdir(directory) {
      let name = withUnsafeBytes(of: entry.pointee.d_name) { bytes in
        String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
      }
      if name.hasPrefix("video"), let number = Int(name.dropFirst(5)) { numbers.append(number) }
    }
    return numbers.sorted().map { "/dev/video\($0)" }
  }

  private static func text(_ hint: UnsafeMutableRawPointer, _ key: String) -> String? {
    guard let value = snd_device_name_get_hint(hint, key) else { return nil }
    defer { free(value) }
    return String(cString: value)
  }
}
