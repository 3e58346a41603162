import ArgumentParser

/// `muster simulate`.
struct SimulateCommand: ParsableCommand {
  static let configuration = CommandConfiguration(commandName: "simulate", abstract: "Simulate.")

  func run() throws {}
}
