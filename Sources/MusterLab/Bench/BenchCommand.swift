import ArgumentParser
import Muster
import MusterSystem

/// The command `muster-lab bench`, which measures this machine.
struct BenchCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "bench",
    abstract: "Measure nodes on this machine, and calls over bad networks.",
    subcommands: [CostBenchCommand.self, MeshBenchCommand.self, NetworkBenchCommand.self],
    defaultSubcommand: CostBenchCommand.self)
}
