import MusterSystem

/// The journal of systemd.
enum Journal {
  /// Whether what is written to a descriptor goes to the journal: systemd names the device and the
  /// inode of its end of the stream in `JOURNAL_STREAM`.
  static func receives(_ descriptor: Int32) -> Bool {
    guard let value = getenv("JOURNAL_STREAM") else { return false }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { return false }
    return String(cString: value) == "\(status.st_dev):\(status.st_ino)"
  }
}
