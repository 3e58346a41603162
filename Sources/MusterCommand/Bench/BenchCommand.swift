import ArgumentParser
import Glibc
import Muster

/// The command `muster bench`, which measures this machine.
struct BenchCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "bench",
    abstract: "Measure nodes on this machine, and calls over bad networks.",
    subcommands: [CostBenchCommand.self, MeshBenchCommand.self, NetworkBenchCommand.self],
    defaultSubcommand: CostBenchCommand.self)
}

/// The CPU time of this process, and the formatting of numbers.
enum Figures {
  /// A number, or a dash if there is none.
  static func text(_ value: Double?, _ decimals: Int) -> String {
    value.map { text($0, decimals) } ?? "-"
  }

  static func text(_ value: Double, _ decimals: Int) -> String {
    guard value.isFinite else { return "-" }
    let scale = (0..<decimals).reduce(1.0) { scale, _ in scale * 10 }
    let whole = Int((abs(value) * scale).rounded())
    let digits = String(whole)
    let padded = String(repeating: "0", count: max(0, decimals + 1 - digits.count)) + digits
    let sign = value < 0 ? "-" : ""
    guard decimals > 0 else { return sign + padded }
    return "\(sign)\(padded.dropLast(decimals)).\(padded.suffix(decimals))"
  }

  /// The CPU time of this process in seconds.
  static var cpuSeconds: Double {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }
}
