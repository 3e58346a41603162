import ArgumentParser
import Muster
import MusterNetwork

/// The command `muster doctor`, which checks the requirements of a call on this machine and
/// suggests remedies.
struct DoctorCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "doctor",
    abstract: "Check the network, the devices and the permissions, and say what to do.",
    discussion: """
      With rendezvous, given or remembered from channels joined before, it also looks beyond the \
      local network: which of them answer, what the router does to this machine's addresses and \
      ports, whether others can be reached through it, and whether it opens ports when asked. Two \
      rendezvous on different machines tell more than one.
      """)

  @Flag(help: "As one JSON object.")
  var json = false

  @Flag(
    help: "Show the counters, links, paths and queues of the node that runs, and check nothing.")
  var node = false

  @Option(
    help: ArgumentHelp("A rendezvous to ask; may be repeated.", valueName: "host:port")
  )
  var rendezvous: [String] = []

  @Option(
    help: ArgumentHelp("An interface to check; may be repeated (default: all).", valueName: "name"))
  var interface: [String] = []

  @Flag(
    name: .customLong("no-port-mapping"), help: "Do not ask the router whether it opens ports.")
  var noPortMapping = false

  @Option(
    help: ArgumentHelp(
      "The data directory to check (default: the XDG data directory).", valueName: "dir"),
    completion: .directory)
  var data: String?

  @OptionGroup var file: SettingsFileOptions

  func run() async throws {
    if node { return try await showNode() }
    try FileLimit.check()
    let (data, settings) = Diagnostics.settings(data, file)
    let chosen = interface
    let known = NetworkInterface.list()
    for name in chosen where !known.contains(where: { $0.name == name }) {
      throw MusterError(
        "there is no interface \(name)", hint: "see the list of muster doctor without --interface",
        kind: .usage)
    }
    let interfaces = chosen.isEmpty ? known : known.filter { chosen.contains($0.name) }
    let (remembered, trouble) = await Diagnostics.rememberedRendezvous(data)
    async let reachability = ReachabilityReport.ask(
      rendezvous, remembered: remembered, interfaces: chosen, mapsPorts: !noPortMapping)
    async let multicast = Diagnostics.multicast(interfaces)
    var findings = Diagnostics.interfaces(interfaces)
    findings += await multicast
    let beyond = try await reachability
    findings += beyond.findings + trouble
    findings += Diagnostics.services()
    findings += Diagnostics.clock()
    findings += settings
    findings += Diagnostics.dataDirectory(data)
    findings += await Diagnostics.devices()
    if json {
      let report = JSONValue.object([
        ("findings", .array(findings.map(\.json))), ("nat", beyond.json),
      ])
      print(report.text)
    } else {
      for line in findings.flatMap(\.lines) { print(line) }
    }
    if findings.contains(where: { $0.verdict == .bad }) { throw ExitCode(1) }
  }

  /// Shows the internal state of the running node, obtained through its control socket.
  private func showNode() async throws(MusterError) {
    let directory = try Settings(data: data, file).dataDirectory()
    let reply = try await Administration.perform(.init(.diagnose), data: directory)
    guard let report = reply.node else {
      throw MusterError("no answer came of it", hint: "update muster and the running node")
    }
    if json { return print(JSONValue(encoding: report).text) }
    for line in NodeTable.lines(report) { print(line) }
  }
}
