import MusterDevices
import Testing

@Suite struct DeviceListTests {
  @Test func listsNeverFail() {
    for camera in DeviceList.cameras() { #expect(camera.path.hasPrefix("/dev/video")) }
    for device in DeviceList.soundDevices() {
      #expect(!device.name.isEmpty && (device.canCapture || device.canPlay))
    }
  }

  @Test func errorsReadAsOneLine() {
    let error = DeviceError(what: "no camera found", hint: "plug one in, or use --video test")
    #expect(error.description == "no camera found: plug one in, or use --video test")
  }
}
