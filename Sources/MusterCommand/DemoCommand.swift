import ArgumentParser
import Glibc
import Muster
import Synchronization

/// The command `muster demo`, which runs a real call of three nodes on this machine.
struct DemoCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "demo",
    abstract: "Run a real three-node call on this machine and show it.",
    discussion: """
      Three processes find each other on the loopback interface, link, and call. Nothing leaves \
      this machine. The page that is printed shows the call as the third of them sees it.
      """)

  @Option(
    name: .customLong("for"),
    help: "Seconds to run (default: until Ctrl-C with a terminal, else 15).")
  var seconds: Double?

  @Option(help: "A .y4m or .ivf file as the first node's camera (default: the test pattern).")
  var video: String?

  @Option(help: "A .wav file as the first node's microphone (default: a tone).")
  var audio: String?

  func run() async throws {
    if let seconds, !(seconds > 0 && seconds < 1e6) {
      throw MusterError("--for \(seconds) is no time", hint: "give seconds above 0", kind: .usage)
    }
    let terminal = isatty(STDOUT_FILENO) == 1
    let limit = seconds ?? (terminal ? 3600 : 15)
    guard let directory = Self.temporaryDirectory() else {
      throw MusterError(
        "cannot make a temporary directory", hint: "check TMPDIR and its free space")
    }
    defer { Self.remove(directory) }
    let nodes = try Demo.cast(video: video, audio: audio).enumerated().map { index, part throws in
      try DemoNode.start(part, data: "\(directory)/\(index)")
    }
    defer { for node in nodes { node.stop() } }
    signal(SIGINT) { _ in Demo.isInterrupted.withLock { $0 = true } }
    signal(SIGTERM) { _ in Demo.isInterrupted.withLock { $0 = true } }
    let board = DemoBoard(nodes: nodes, drawsInPlace: terminal)
    try await board.watch(for: limit)
    guard board.conclude() else { throw ExitCode(1) }
  }

  private static func temporaryDirectory() -> String? {
    let base = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
    var template = Array("\(base)/muster-demo-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { return nil }
    return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  /// The names of the files that a node leaves in its data directory.
  private static let files = [
    "identity", "name", "lock", "control.sock", "muster.sqlite", "muster.sqlite-wal",
    "muster.sqlite-shm",
    "speaker.wav",
  ]

  /// Removes a directory of the demo. Only known files are deleted, so that no other file can be
  /// lost.
  private static func remove(_ directory: String) {
    for index in 0..<3 {
      for file in files { unlink("\(directory)/\(index)/\(file)") }
      rmdir("\(directory)/\(index)")
    }
    rmdir(directory)
  }
}

/// The nodes of the demo.
enum Demo {
  struct Part: Sendable {
    var name: String
    var video: String
    var audio: String
    var hasPage: Bool
  }

  static let channel = "demo"
  static let isInterrupted = Mutex(false)

  static func cast(video: String?, audio: String?) -> [Part] {
    [
      Part(
        name: "Ada", video: video ?? "test:640x360@30", audio: audio ?? "tone", hasPage: false),
      Part(name: "Grace", video: "test:640x360@30", audio: "tone", hasPage: false),
      Part(name: "Hedy", video: "test:640x360@30", audio: "none", hasPage: true),
    ]
  }
}
