import ArgumentParser
import MusterCommand

/// The command line of Muster's lab, for the executable `muster-lab` and for tests.
public enum LabTool {
  /// Runs the command in the process's arguments; exits with code 2 after a usage error and with
  /// code 1 after a failure.
  public static func main() async { await CommandLineTool.run(LabCommand.self) }
}

/// The command `muster-lab`, which contains all other commands as subcommands.
struct LabCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "muster-lab",
    abstract: "Muster's lab: nodes on a simulated network, and measurements of real ones.",
    subcommands: [SimulateCommand.self, BenchCommand.self])
}
