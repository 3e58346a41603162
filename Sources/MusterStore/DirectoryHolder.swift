import MusterSystem

/// The process that holds the lock of a data directory, as the lock file names it.
public struct DirectoryHolder: Equatable, Sendable {
  /// What the process needs the directory for.
  public enum Use: String, Sendable {
    /// As long as the node runs.
    case node
    /// For a few milliseconds.
    case command
  }

  /// What the process needs the directory for.
  public var use: Use
  /// The id of the process.
  public var processID: Int32

  /// The process in words: "a node (process 4711)".
  public var text: String {
    let name =
      switch use {
      case .node: "a node"
      case .command: "another muster command"
      }
    return "\(name) (process \(processID))"
  }

  init(use: Use, processID: Int32) {
    self.use = use
    self.processID = processID
  }

  /// Reads what `write` has written. Nil if it is damaged, or names a process that has ended: that
  /// process was killed, and the next holder of the lock has not written yet.
  init?(decoding text: String) {
    let words = text.split(separator: "\n").first?.split(separator: " ") ?? []
    guard words.count == 2, let use = Use(rawValue: String(words[0])),
      let processID = Int32(words[1]), processID > 0,
      kill(processID, 0) == 0 || errno == EPERM
    else { return nil }
    self.init(use: use, processID: processID)
  }

  /// Writes the holder into the locked file. Errors are ignored: the lock holds all the same, and
  /// others know only that someone has it.
  func write(to lock: Int32) {
    ftruncate(lock, 0)
    let text = "\(use.rawValue) \(processID)\n"
    _ = Array(text.utf8).withUnsafeBytes { pwrite(lock, $0.baseAddress, $0.count, 0) }
  }
}
