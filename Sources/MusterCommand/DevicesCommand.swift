import ArgumentParser
import Muster
import MusterDevices

/// The command `muster devices`, which lists cameras, microphones and loudspeakers.
struct DevicesCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "devices", abstract: "List cameras, microphones and loudspeakers.")

  @Flag(help: "As one JSON object.")
  var json = false

  func run() throws {
    let cameras = DeviceList.cameras()
    let soundDevices = DeviceList.soundDevices()
    if json { return print(Self.json(cameras, soundDevices).text) }
    print("Cameras (--video camera:PATH)")
    for camera in cameras {
      print("  \(camera.path)  \(camera.name)")
      for mode in camera.modes { print("      \(mode)") }
    }
    if cameras.isEmpty { print("  none found; --video test or a file works without one") }
    print("Microphones (--audio mic:NAME)")
    Self.list(
      soundDevices.filter(\.canCapture),
      none: "none found; --audio tone or a file works without one")
    print("Loudspeakers (--speaker NAME)")
    Self.list(
      soundDevices.filter(\.canPlay), none: "none found; --speaker FILE.wav works without one")
  }

  private static func list(_ devices: [DeviceList.SoundDevice], none: String) {
    for device in devices { print("  \(device.name)  \(device.description)") }
    if devices.isEmpty { print("  \(none)") }
  }

  private static func json(
    _ cameras: [DeviceList.Camera], _ soundDevices: [DeviceList.SoundDevice]
  ) -> JSONValue {
    .object([
      (
        "cameras",
        .array(
          cameras.map { camera in
            .object([
              ("path", .string(camera.path)), ("name", .string(camera.name)),
              ("modes", .array(camera.modes.map { .string("\($0)") })),
            ])
          })
      ),
      (
        "sound",
        .array(
          soundDevices.map { device in
            .object([
              ("name", .string(device.name)), ("description", .string(device.description)),
              ("canCapture", .bool(device.canCapture)), ("canPlay", .bool(device.canPlay)),
            ])
          })
      ),
    ])
  }
}
