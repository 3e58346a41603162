import Muster
import MusterSystem

/// A temporary directory of a command. Only known files are deleted, so that no other file can be
/// lost.
package struct TemporaryDirectory {
  package let path: String

  /// The names of the files that a node leaves in its data directory, and of its audio output.
  private static let nodeFiles = [
    "identity", "name", "lock", "control.sock", "muster.sqlite", "muster.sqlite-wal",
    "muster.sqlite-shm", "speaker.wav",
  ]

  /// Creates a directory whose name contains that of the command.
  package init(for command: String) throws {
    let base = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
    var template = Array("\(base)/muster-\(command)-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else {
      throw MusterError(
        "cannot make a temporary directory", hint: "check TMPDIR and its free space")
    }
    let bytes = template.dropLast().map { UInt8(truncatingIfNeeded: $0) }
    path = String(decoding: bytes, as: UTF8.self)
  }

  package func file(_ name: String) -> String { "\(path)/\(name)" }

  /// The data directory of a node, by the node's index.
  package func data(of node: Int) -> String { file(String(node)) }

  /// Removes the directory with these files and the data directories of the first `nodes` nodes.
  package func remove(files: [String] = [], nodes: Int = 0) {
    for name in files { unlink(file(name)) }
    for node in 0..<nodes {
      for name in Self.nodeFiles { unlink("\(data(of: node))/\(name)") }
      rmdir(data(of: node))
    }
    rmdir(path)
  }
}
