import Foundation
import Testing

/// The size of the gate, counted: what every change waits for grows by a decision, and not by the
/// way.
///
/// A change that adds a check takes another one out, or raises the number here and says why.
struct GateTests {
  @Test(arguments: [("LabTests", 14), ("InteropTests", 20)])
  func checksOfProcessesAreFew(folder: String, most: Int) {
    let checks = Tree.files.filter { $0.path.hasPrefix("Tests/\(folder)/checks_") }
      .flatMap(\.lines).filter { $0.contains("gate=True") }
    #expect(!checks.isEmpty && checks.count <= most, "\(checks.count) of \(folder) are in the gate")
  }

  /// The tests count at run time what they simulate, by these numbers.
  @Test(arguments: [("mostCalls", 25), ("mostSeeds", 60)])
  func simulationsAreFew(name: String, most: Int) throws {
    let tier = try #require(Tree.text(of: "Tests/SimulationTests/Tier.swift"))
    #expect(tier.contains("static let \(name) = \(most)\n"))
  }

  @Test func everySimulationIsCounted() {
    let others = Tree.swift.filter {
      $0.path.hasPrefix("Tests/SimulationTests/") && !$0.path.hasSuffix("/Tier.swift")
    }
    for file in others {
      #expect(!file.text.contains("CallSimulation.run("), "\(file.path): use Tier.call")
      #expect(!file.text.contains("withTaskGroup"), "\(file.path): use Tier.run")
    }
  }
}
