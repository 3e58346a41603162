import ArgumentParser
import Muster

/// The commands that `muster` had until version 0.1; now they are those of `muster-lab`.
enum MovedCommand {
  struct Simulate: ParsableCommand {
    static let configuration = moved("simulate")

    @Argument(parsing: .allUnrecognized) var rest: [String] = []

    func run() throws { throw error("simulate") }
  }

  struct Bench: ParsableCommand {
    static let configuration = moved("bench")

    @Argument(parsing: .allUnrecognized) var rest: [String] = []

    func run() throws { throw error("bench") }
  }

  private static func moved(_ name: String) -> CommandConfiguration {
    CommandConfiguration(commandName: name, shouldDisplay: false, helpNames: [])
  }

  private static func error(_ name: String) -> MusterError {
    MusterError(
      "muster \(name) is muster-lab \(name) now, a tool of Muster's developers",
      hint: "run make lab in Muster's sources, then .build/release/muster-lab \(name)", kind: .usage
    )
  }
}
