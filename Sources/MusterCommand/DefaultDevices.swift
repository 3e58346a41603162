import MusterDevices
import MusterSystem

/// Whether this machine has devices that can be used without naming any. The devices are opened for
/// that, because ALSA also lists those that cannot be opened.
enum DefaultDevices {
  static func hasMicrophone() async -> Bool {
    let found: Void? = try? await DeviceOpening.onThread { cancellation throws(DeviceError) in
      try AudioSources.open("mic", cancellation: cancellation).cancel()
    }
    return found != nil
  }

  static func hasSpeaker() async -> Bool {
    let found: Void? = try? await DeviceOpening.onThread { _ throws(DeviceError) in
      try AudioSinks.open("default").close()
    }
    return found != nil
  }

  static func hasCamera() async -> Bool {
    await WorkerThread.value("muster-devices") {
      DeviceList.cameras().contains { !$0.modes.isEmpty }
    }
  }
}
