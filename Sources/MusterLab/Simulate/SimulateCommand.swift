import ArgumentParser
import Muster
import MusterBase
import MusterSimulator

/// The command `muster-lab simulate`, which runs many nodes on a virtual network and clock. A seed
/// makes the run reproducible.
struct SimulateCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "simulate",
    abstract: "Run nodes on a simulated network with faults, and check what may never happen.",
    discussion: """
      The same seed gives the same run, to the byte. One seed prints a line per event; several \
      print a line each and stop at the first that fails. With --gossip only the spreading of \
      news is simulated, among far more nodes. With --reach members of a call move about between \
      homes behind routers that translate addresses, and must be linked within 10 s of the last \
      change; of the other options --nodes, --loss, --seed, --seeds and --json count then. With \
      --adversary someone uses one invite, or an open channel's key, for up to 64 keys that sign \
      what they like, and members must still meet; --channel, --seed, --seeds and --json count.
      """)

  @Option(
    help: ArgumentHelp("How many nodes (default: 3 to 17, as the seed says).", valueName: "n"))
  var nodes: Int?

  @Option(help: ArgumentHelp("The first seed.", valueName: "n"))
  var seed: UInt64 = 1

  @Option(help: ArgumentHelp("How many seeds in a row.", valueName: "n"))
  var seeds = 1

  @Option(help: "Simulated seconds: half of them with faults; ends early when all have agreed.")
  var seconds: Int?

  @Option(
    help: ArgumentHelp("swarm, none, or a list such as loss,partition,crash.", valueName: "names"))
  var faults = "swarm"

  @Option(
    help: ArgumentHelp(
      "Percent of datagrams lost on every path while there are faults.", valueName: "percent"))
  var loss: Double?

  @Option(
    help: ArgumentHelp(
      "Who hears whom: full, chain, star, ring or random (default: the seed says).",
      valueName: "shape"), completion: .list(["full", "chain", "star", "ring", "random"]))
  var shape: String?

  @Option(
    help: ArgumentHelp("open or created (default: the seed says).", valueName: "kind"),
    completion: .list(["open", "created"]))
  var channel: String?

  @Flag(inversion: .prefixedNo, help: "Video and audio, or none (default: the seed says).")
  var media: Bool?

  @Flag(help: "The result as a JSON object on the last line.")
  var json = false

  @Option(help: ArgumentHelp("Draw the run, or the one that fails.", valueName: "file"))
  var svg: String?

  @Flag(help: "Only the gossip, over a random graph.")
  var gossip = false

  @Option(help: ArgumentHelp("With --gossip: neighbours of each node.", valueName: "n"))
  var degree = 6

  @Flag(help: "Members behind routers, who meet through rendezvous, while all of it changes.")
  var reach = false

  @Flag(help: "Members, and an adversary with an invite and many keys.")
  var adversary = false

  func run() throws {
    let modes = [(gossip, "--gossip"), (reach, "--reach"), (adversary, "--adversary")]
    let chosen = modes.filter(\.0).map(\.1)
    if chosen.count > 1 {
      throw MusterError(
        chosen.joined(separator: " and "), hint: "choose one of them", kind: .usage)
    }
    if gossip { return try runGossip() }
    if adversary { return try runAdversary() }
    if reach { return try runReach() }
    try checkRanges()
    try runSeeds(
      report: SimulateReport.json, reproduction: reproduction,
      finish: { results in
        if let svg, let last = results.last { try draw(last, to: svg) }
      }
    ) { Simulation.run(try options(for: $0)) }
  }

  /// Simulates the seeds up to the first that fails, prints what each shows, and reports them all.
  /// `reproduction` is the command line that repeats a failed run.
  private func runSeeds<Result: SeedResult>(
    report: ([Result], UInt64) -> JSONValue, reproduction: (Result) -> String,
    finish: ([Result]) throws -> Void = { _ in }, _ simulate: (UInt64) throws -> Result
  ) throws {
    var results: [Result] = []
    for number in 0..<seeds {
      let result = try simulate(seed &+ UInt64(number))
      for line in result.timeline { print(line) }
      if !json || seeds == 1 { print(result.summary) }
      results.append(result)
      if result.violation != nil { break }
    }
    try finish(results)
    if json { print(report(results, seed).text) }
    if let failed = results.last, let violation = failed.violation {
      throw MusterError(
        "seed \(failed.seed) fails: \(violation)", hint: "see \(reproduction(failed))")
    }
  }

  // MARK: Options

  private func options(for seed: UInt64) throws -> SimulationOptions {
    var options = SimulationOptions(
      seed: seed, nodes: nodes, seconds: seconds, faults: try faultChoice(),
      loss: loss.map { $0 / 100 }, shape: try shapeChoice(), channel: try channelChoice(),
      media: media, keepsTimeline: seeds == 1)
    options.draws = svg != nil && seeds == 1
    return options
  }

  private func faultChoice() throws -> FaultChoice {
    switch faults {
    case "swarm": return .swarm
    case "none": return .none
    default: break
    }
    let named = try faults.split(separator: ",").map { name in
      guard let fault = Fault(rawValue: String(name)) else {
        let known = Fault.allCases.map(\.rawValue).joined(separator: ",")
        throw MusterError(
          "no fault is called '\(name)'", hint: "use some of \(known)", kind: .usage)
      }
      return fault
    }
    return .only(named)
  }

  private func shapeChoice() throws -> NetworkShape? {
    guard let shape else { return nil }
    guard let choice = NetworkShape(rawValue: shape) else {
      let known = NetworkShape.allCases.map(\.rawValue).joined(separator: ", ")
      throw MusterError("--shape \(shape)", hint: "use one of \(known)", kind: .usage)
    }
    return choice
  }

  private func channelChoice() throws -> ChannelKind? {
    guard let channel else { return nil }
    guard let choice = ChannelKind(rawValue: channel) else {
      throw MusterError("--channel \(channel)", hint: "use open or created", kind: .usage)
    }
    return choice
  }

  private func checkRanges() throws {
    let limit = SimulationOptions.nodeLimit
    if let nodes, !(1...limit).contains(nodes) {
      throw MusterError("--nodes \(nodes)", hint: "use 1 to \(limit)", kind: .usage)
    }
    if let seconds, !(2...86_400).contains(seconds) {
      throw MusterError("--seconds \(seconds)", hint: "use 2 to 86400", kind: .usage)
    }
    try checkLoss()
    try checkSeeds()
  }

  private func checkLoss() throws {
    if let loss, !(0...100).contains(loss) {
      throw MusterError("--loss \(loss)", hint: "use 0 to 100", kind: .usage)
    }
  }

  private func checkSeeds() throws {
    guard (1...10_000_000).contains(seeds) else {
      throw MusterError("--seeds \(seeds)", hint: "use 1 or more", kind: .usage)
    }
  }

  // MARK: Diagrams

  /// Writes the SVG diagram of a run. If the run was one of several, the run is repeated
  /// first, because a diagram is recorded only for a single run.
  private func draw(_ result: SimulationResult, to path: String) throws {
    var drawing = result.drawing
    if drawing == nil {
      var again = try options(for: result.seed)
      again.draws = true
      drawing = Simulation.run(again).drawing
    }
    try TextFile.write(drawing ?? "", to: path)
  }

  // MARK: Gossip

  /// Simulates the spreading of gossip among `nodes` nodes; without `--nodes`, among 10, 30, 100,
  /// 300 and 1,000 nodes.
  private func runGossip() throws {
    let limit = GossipOptions.nodeLimit
    if let nodes, !(2...limit).contains(nodes) {
      throw MusterError("--nodes \(nodes)", hint: "use 2 to \(limit)", kind: .usage)
    }
    guard (1...Limits.peersPerChannel).contains(degree) else {
      throw MusterError(
        "--degree \(degree)", hint: "use 1 to \(Limits.peersPerChannel)", kind: .usage)
    }
    try checkLoss()
    var results: [GossipResult] = []
    if !json { print(SimulateReport.gossipHeading) }
    for count in nodes.map({ [$0] }) ?? [10, 30, 100, 300, 1000] {
      let options = GossipOptions(
        nodes: count, degree: degree, seed: seed, loss: (loss ?? 0) / 100)
      let result = GossipSimulation.run(options)
      if !json { print(SimulateReport.row(of: result)) }
      results.append(result)
    }
    if json { print(SimulateReport.json(results).text) }
    if let failed = results.first(where: { !$0.reachedAll }) {
      throw MusterError(
        "news did not reach all of \(failed.nodes) nodes", hint: "seed \(seed), degree \(degree)")
    }
  }

  // MARK: Reachability

  private func runReach() throws {
    let limit = ReachOptions.nodeLimit
    if let nodes, !(2...limit).contains(nodes) {
      throw MusterError("--nodes \(nodes)", hint: "use 2 to \(limit)", kind: .usage)
    }
    try checkLoss()
    try checkSeeds()
    try runSeeds(report: SimulateReport.json) { failed in
      var words = ["muster-lab simulate --reach --seed \(failed.seed)"]
      if let nodes { words.append("--nodes \(nodes)") }
      if let loss { words.append("--loss \(loss)") }
      return words.joined(separator: " ")
    } _: { seed in
      ReachSimulation.run(
        ReachOptions(
          seed: seed, nodes: nodes, loss: loss.map { $0 / 100 }, keepsTimeline: seeds == 1))
    }
  }

  // MARK: Adversary

  private func runAdversary() throws {
    try checkSeeds()
    let kind = try channelChoice()
    try runSeeds(report: SimulateReport.json) { failed in
      "muster-lab simulate --adversary --seed \(failed.seed)"
        + (channel.map { " --channel \($0)" } ?? "")
    } _: { seed in
      AdversarySimulation.run(
        AdversaryOptions(seed: seed, channel: kind, keepsTimeline: seeds == 1))
    }
  }

  /// The command line that reproduces a failed run.
  private func reproduction(of result: SimulationResult) -> String {
    var words = ["muster-lab simulate --seed \(result.seed)"]
    if let nodes { words.append("--nodes \(nodes)") }
    if let seconds { words.append("--seconds \(seconds)") }
    if faults != "swarm" { words.append("--faults \(faults)") }
    if let loss { words.append("--loss \(loss)") }
    if let shape { words.append("--shape \(shape)") }
    if let channel { words.append("--channel \(channel)") }
    if let media { words.append(media ? "--media" : "--no-media") }
    return words.joined(separator: " ")
  }
}
