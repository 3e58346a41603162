import MusterDevices
import MusterSystem

/// Whether this machine has devices that can be used without naming any. They are opened for that,
/// because ALSA also lists devices that cannot be opened, and on a thread of their own, since
/// drivers and sound servers take their time.
enum DefaultDevices {
  static func hasMicrophone() async -> Bool {
    await WorkerThread.value("muster-devices") { (try? AudioSources.open("mic")) != nil }
  }

  static func hasSpeaker() async -> Bool {
    await WorkerThread.value("muster-devices") { (try? AudioSinks.open("default")) != nil }
  }

  static func hasCamera() async -> Bool {
    await WorkerThread.value("muster-devices") {
      DeviceList.cameras().contains { !$0.modes.isEmpty }
    }
  }
}
