import MusterSystem

/// Opens devices and files without blocking the caller's thread, since drivers, sound servers and
/// the writers of FIFOs take their time.
package enum DeviceOpening {
  /// Runs `open` on a thread of its own. A cancelled task cancels what is being opened.
  package static func onThread<Device: Sendable>(
    _ open: @escaping @Sendable (Cancellation) throws(DeviceError) -> Device
  ) async throws(DeviceError) -> Device {
    let cancellation = Cancellation()
    let result = await WorkerThread.value("muster-open", cancel: { cancellation.cancel() }) {
      Result { () throws(DeviceError) in try open(cancellation) }
    }
    return try result.get()
  }
}
