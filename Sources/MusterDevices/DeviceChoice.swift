import MusterSystem

/// A device, file or pattern that a user has chosen, and how to open it.
public struct DeviceChoice<Device: Sendable>: Sendable {
  /// The text that names it, such as `camera:/dev/video0`.
  public let name: String
  /// Whether this is a device, which is open only while it is needed, and tried again after a
  /// failure. Files and patterns stay open.
  public let isDevice: Bool
  /// Opens it; blocks. The cancellation ends that, and later the waits of what was opened.
  package let open: @Sendable (Cancellation) throws(DeviceError) -> Device

  /// A choice that `open` opens, on a thread that may block.
  package init(
    _ name: String, isDevice: Bool,
    open: @escaping @Sendable (Cancellation) throws(DeviceError) -> Device
  ) {
    self.name = name
    self.isDevice = isDevice
    self.open = open
  }
}

/// A chosen source of video.
public typealias VideoInput = DeviceChoice<any VideoSource>
/// A chosen source of audio.
public typealias AudioInput = DeviceChoice<any AudioSource>
/// A chosen destination of audio.
public typealias AudioOutput = DeviceChoice<any AudioSink>

extension VideoInput {
  /// The input that `VideoSources.open` opens by this text.
  public init(_ specification: String) {
    self.init(specification, isDevice: VideoSources.isDevice(specification)) {
      cancellation throws(DeviceError) in
      try VideoSources.open(specification, cancellation: cancellation)
    }
  }
}

extension AudioInput {
  /// The input that `AudioSources.open` opens by this text.
  public init(_ specification: String) {
    self.init(specification, isDevice: AudioSources.isDevice(specification)) {
      cancellation throws(DeviceError) in
      try AudioSources.open(specification, cancellation: cancellation)
    }
  }
}

extension AudioOutput {
  /// The output that `AudioSinks.open` opens by this text.
  public init(_ specification: String) {
    self.init(specification, isDevice: AudioSinks.isDevice(specification)) {
      cancellation throws(DeviceError) in
      try AudioSinks.open(specification, cancellation: cancellation)
    }
  }
}
