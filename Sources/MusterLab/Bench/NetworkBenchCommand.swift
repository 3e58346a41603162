import ArgumentParser
import Muster
import MusterBase
import MusterSimulator
import MusterSystem

/// The command `muster-lab bench network`, which runs calls over bad networks in the simulator.
struct NetworkBenchCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "network",
    abstract: "Measure calls over narrow, lossy and changing networks, in the simulator.",
    discussion: """
      Real nodes with models of encoders run on virtual time, so that a minute of a call takes \
      about a second and the same seed gives the same figures on any machine. Rates count IP \
      packets. A flow is measured from 5 s after both have joined until the end.
      """)

  @Option(help: ArgumentHelp("Only this scenario; may be repeated.", valueName: "name"))
  var scenario: [String] = []

  @Option(help: ArgumentHelp("The seed of all randomness.", valueName: "n"))
  var seed: UInt64 = 1

  @Option(help: ArgumentHelp("Draw each scenario into a file of this directory.", valueName: "dir"))
  var svg: String?

  @Flag(help: "A JSON object per flow instead of the table.")
  var json = false

  @Flag(help: "Run nothing: print the scenarios, a JSON object each, for other emulators.")
  var list = false

  func run() throws {
    if list, svg != nil {
      throw MusterError("--list runs nothing to draw", hint: "leave out --svg", kind: .usage)
    }
    let chosen = try scenario.isEmpty ? NetworkScenario.all : scenario.map(find)
    if list {
      for scenario in chosen { print(NetworkBenchReport.json(scenario).text) }
      return
    }
    if let svg { try checkDirectory(svg) }
    if !json { print(NetworkBenchReport.header) }
    for scenario in chosen {
      let result = CallSimulation.run(scenario, seed: seed, draws: svg != nil)
      if let violation = result.violation {
        throw MusterError(
          "\(scenario.name) fails with seed \(seed): \(violation)",
          hint: "this is a defect: please report it")
      }
      let lines =
        json
        ? NetworkBenchReport.json(result, seed: seed).map(\.text) : NetworkBenchReport.rows(result)
      for line in lines { print(line) }
      fflush(nil)
      if let svg, let drawing = result.drawing {
        try TextFile.write(drawing, to: "\(svg)/\(scenario.name).svg")
      }
    }
  }

  private func find(_ name: String) throws -> NetworkScenario {
    if let scenario = NetworkScenario.named(name) { return scenario }
    let known = NetworkScenario.all.map(\.name).joined(separator: ", ")
    throw MusterError("no scenario is called '\(name)'", hint: "use one of \(known)", kind: .usage)
  }

  private func checkDirectory(_ path: String) throws {
    var status = stat()
    guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else {
      throw MusterError("\(path) is no directory", hint: "create it first", kind: .usage)
    }
  }
}
