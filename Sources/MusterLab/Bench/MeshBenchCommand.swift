import ArgumentParser
import Muster
import MusterBase
import MusterCommand
import MusterCrypto
import MusterDevices
import MusterSystem
import MusterWire

/// The command `muster-lab bench mesh`, which measures a call of many real nodes on this machine.
struct MeshBenchCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "mesh",
    abstract: "Measure a call of many nodes on this machine.",
    discussion: """
      Every node is a process in a network namespace of its own, on a kernel bridge. All of them \
      request the video of the first one, the speaker, as --large, and that of the others as \
      --small. With a test pattern, the last node decodes it to read its latency. Needs root, and \
      ip from iproute2.
      """)

  @Option(help: ArgumentHelp("How many nodes, 2 to \(mostNodes).", valueName: "n"))
  var nodes = 5

  @Option(
    name: .customLong("for"),
    help: ArgumentHelp(
      "Seconds to measure for, from when everyone has received everyone.", valueName: "seconds"))
  var seconds = 20

  @Option(
    help: ArgumentHelp(
      "The video of every node: test[:WxH@FPS], a .y4m or .ivf file, or none.", valueName: "source"),
    completion: .file(extensions: ["y4m", "ivf"]))
  var video = "test:640x360@30"

  @Option(
    help: ArgumentHelp("The audio of every node: tone, a .wav file or none.", valueName: "source"),
    completion: .file(extensions: ["wav"]))
  var audio = "tone"

  @Option(help: ArgumentHelp("What is requested of the speaker's video.", valueName: "size"))
  var large = "640x360@30"

  @Option(help: ArgumentHelp("What is requested of the others' video.", valueName: "size"))
  var small = "320x180@15"

  @Option(
    help: ArgumentHelp(
      "A directory to record into (default: nothing is recorded).", valueName: "dir"),
    completion: .directory)
  var record: String?

  @Option(
    help: ArgumentHelp(
      "Another build of muster to measure, which need not know all options.", valueName: "file"),
    completion: .file())
  var program: String?

  @Flag(help: "A JSON object in place of the table.")
  var json = false

  /// The time in seconds that a node has to receive everyone: 20, and one for each node.
  private var patience: Int { 20 + nodes }
  /// The time in seconds in which the estimates of the paths settle.
  private static let settling = 5
  /// As many nodes as all link to each other, and an hour.
  private static let mostNodes = Limits.peersPerChannel + 1
  private static let mostSeconds = 3600

  func run() async throws {
    let largest = try VideoLimit(checking: large, as: "--large \(Words.shown(large))")
    let smallest = try VideoLimit(checking: small, as: "--small \(Words.shown(small))")
    guard (2...Self.mostNodes).contains(nodes), (2...Self.mostSeconds).contains(seconds) else {
      throw MusterError(
        "--nodes or --for is out of range",
        hint: "give 2 to \(Self.mostNodes) nodes, and 2 to \(Self.mostSeconds) seconds",
        kind: .usage)
    }
    let rate = try sourceRate()
    let fullRates = (speaker: largest.rate(of: rate), others: smallest.rate(of: rate))
    guard geteuid() == 0 else {
      throw MusterError("network namespaces need root", hint: "run it with sudo")
    }
    if let record, mkdir(record, 0o755) != 0, errno != EEXIST {
      throw MusterError(
        "cannot make the directory \(record)", hint: "check the path and its permissions")
    }
    Interruption.catchSignals()
    let directory = try TemporaryDirectory(for: "bench")
    defer { directory.remove(nodes: nodes) }
    let network = try MeshNetwork(hosts: nodes)
    defer { network.remove() }
    var mesh: [MeshNode] = []
    defer { Self.stop(mesh) }
    for index in 0..<nodes { mesh.append(try start(index, network, directory)) }
    let speaker = try await meet(mesh)
    for node in mesh.dropFirst() {
      node.send(
        .watch(.init(largest.size, framesPerSecond: largest.framesPerSecond, of: speaker)))
    }
    try await receive(mesh)
    try await pause(Self.settling, mesh)
    let before = mesh.map { $0.sample() }
    progress("measuring for \(seconds) s")
    try await pause(seconds, mesh)
    let spans = zip(mesh, before).compactMap { node, before in before.flatMap(node.span(since:)) }
    let result = MeshResult(spans, speaker: speaker, fullRates: fullRates)
    progress("")
    if json {
      print(MeshBenchReport.json(result).text)
    } else {
      for line in MeshBenchReport.table(result) { print(line) }
    }
  }

  private func start(
    _ index: Int, _ network: MeshNetwork, _ directory: TemporaryDirectory
  ) throws -> MeshNode {
    let name = "n\(index + 1)"
    var arguments = [
      "join", "mesh", "--passphrase", Self.passphrase, "--call", "--json", "--no-view",
      "--name", name, "--video", video, "--audio", audio,
      "--speaker", "\(directory.data(of: index))/speaker.wav", "--max-video", small,
      "--data", directory.data(of: index),
    ]
    // Should this process be killed, the nodes end nevertheless.
    arguments += ["--for", String(2 * patience + Self.settling + 2 * seconds + 60)]
    if let record { arguments += ["--record", "\(record)/\(name)"] }
    if program == nil, index < nodes - 1 { arguments.append("--no-latency") }
    mkdir(directory.data(of: index), 0o700)
    return try MeshNode(
      name, in: network.namespace(of: index), program: program ?? Self.ownBuild(), arguments)
  }

  /// The frame rate of the video of the nodes; 0 for none.
  private func sourceRate() throws -> Int {
    guard video != "none" else { return 0 }
    let source = try VideoSources.open(video)
    defer { source.cancel() }
    return source.format.framesPerSecond
  }

  /// A random passphrase per run, although the network is closed.
  private static let passphrase: String = {
    var entropy = Entropy.system
    return Hex.encode(entropy.bytes(16))
  }()

  /// The path of the `muster` that was built with this program.
  private static func ownBuild() throws -> String {
    guard let path = realpath("/proc/self/exe", nil) else {
      throw MusterError("cannot find this program's file", hint: "give muster's as --program")
    }
    defer { free(path) }
    let folder = String(cString: path).split(separator: "/").dropLast()
    let file = "/\(folder.joined(separator: "/"))/muster"
    guard access(file, X_OK) == 0 else {
      throw MusterError("there is no \(file)", hint: "run make lab, or give one as --program")
    }
    return file
  }

  // MARK: Phases

  /// Waits until every node is in the call and knows all others; returns the speaker's id.
  private func meet(_ mesh: [MeshNode]) async throws -> String {
    for _ in 0..<patience * 10 {
      let summaries = mesh.map(\.summary)
      let met = summaries.count { $0.isInCall && $0.members.count >= nodes - 1 }
      progress("\(met) of \(nodes) nodes know everyone")
      if met == nodes, let speaker = summaries.first?.id { return speaker }
      try await pause(tenths: 1, mesh)
    }
    throw MusterError(
      "the nodes have not met within \(patience) s", hint: "try fewer with --nodes")
  }

  /// Waits until every node has received everyone, or for as long as is reasonable: the
  /// measurement then shows what is missing.
  private func receive(_ mesh: [MeshNode]) async throws {
    guard video != "none" else { return }
    for _ in 0..<patience * 10 {
      let complete = mesh.count { $0.summary.firstFrames.count >= nodes - 1 }
      progress("\(complete) of \(nodes) nodes receive everyone")
      if complete == nodes { return }
      try await pause(tenths: 1, mesh)
    }
  }

  private func pause(_ seconds: Int, _ mesh: [MeshNode]) async throws {
    for _ in 0..<seconds * 10 { try await pause(tenths: 1, mesh) }
  }

  private func pause(tenths: Int, _ mesh: [MeshNode]) async throws {
    try await Task.sleep(for: .milliseconds(100 * tenths))
    if Interruption.isRequested { throw ExitCode(1) }
    if let ended = mesh.first(where: { $0.summary.hasEnded }) {
      throw MusterError(
        "the node \(ended.name) has ended", hint: "its own words stand above, if it had any")
    }
  }

  private static func stop(_ mesh: [MeshNode]) {
    for node in mesh { node.send(.quit) }
    for node in mesh { node.stop() }
  }

  /// Shows progress in one line of a terminal.
  private func progress(_ text: String) {
    guard isatty(STDERR_FILENO) == 1 else { return }
    let line = Array("\r\u{1B}[K\(text)".utf8)
    _ = line.withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
  }
}
