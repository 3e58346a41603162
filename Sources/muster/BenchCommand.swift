import ArgumentParser
import Muster

/// `muster bench`.
struct BenchCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(commandName: "bench", abstract: "Measure.")

  func run() async throws {}
}
