import ArgumentParser
import Muster
import MusterSystem

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
    help: ArgumentHelp(
      "Seconds to run (default: until Ctrl-C with a terminal, else 15).", valueName: "seconds"))
  var seconds: Double?

  @Option(
    help: ArgumentHelp(
      "A .y4m or .ivf file as the first node's camera (default: the test pattern).",
      valueName: "file"), completion: .file(extensions: ["y4m", "ivf"]))
  var video: String?

  @Option(
    help: ArgumentHelp(
      "A .wav file as the first node's microphone (default: a tone).", valueName: "file"),
    completion: .file(extensions: ["wav"]))
  var audio: String?

  func run() async throws {
    if let seconds, !(seconds > 0 && seconds < 1e6) {
      throw MusterError("--for \(seconds) is no time", hint: "give seconds above 0", kind: .usage)
    }
    let terminal = isatty(STDOUT_FILENO) == 1
    let limit = seconds ?? (terminal ? 3600 : 15)
    let directory = try TemporaryDirectory(for: "demo")
    let parts = Demo.cast(video: video, audio: audio)
    defer { directory.remove(nodes: parts.count) }
    var nodes: [DemoNode] = []
    defer { for node in nodes { node.stop() } }
    for (index, part) in parts.enumerated() {
      nodes.append(try DemoNode(part, data: directory.data(of: index)))
    }
    Interruption.catchSignals()
    let board = DemoBoard(nodes: nodes, drawsInPlace: terminal)
    try await board.watch(for: limit)
    guard board.conclude() else { throw ExitCode(1) }
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

  static func cast(video: String?, audio: String?) -> [Part] {
    [
      Part(
        name: "Ada", video: video ?? "test:640x360@30", audio: audio ?? "tone", hasPage: false),
      Part(name: "Grace", video: "test:640x360@30", audio: "tone", hasPage: false),
      Part(name: "Hedy", video: "test:640x360@30", audio: "none", hasPage: true),
    ]
  }
}
