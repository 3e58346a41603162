import ArgumentParser
import Muster
import MusterCommand

/// The command `muster-lab bench cost`, which measures the CPU cost of a node relative to the bare
/// libraries in the same run.
struct CostBenchCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "cost",
    abstract: "Measure a node's cost against the bare libraries.",
    discussion: """
      Every figure is a ratio of two measurements of the same run, so that it means the same on \
      any machine. Allocations are counted only with the counting library, as make bench has it.
      """)

  @Option(
    name: .customLong("for"),
    help: ArgumentHelp("Seconds to measure the call for.", valueName: "seconds"))
  var seconds = 10

  @Option(
    help: ArgumentHelp(
      "A .y4m file of 640x360 to call with (default: the test pattern).", valueName: "file"),
    completion: .file(extensions: ["y4m"]))
  var video: String?

  @Option(
    help: ArgumentHelp("A .wav file to call with (default: a tone).", valueName: "file"),
    completion: .file(extensions: ["wav"]))
  var audio: String?

  @Flag(help: "Only what needs no call: packets and allocations.")
  var quick = false

  func run() async throws {
    guard (2...600).contains(seconds) else {
      throw MusterError("--for \(seconds) is out of range", hint: "give 2 to 600", kind: .usage)
    }
    var exceeded = false
    let packet = try PacketBench.run()
    print("Sealing and opening a datagram of 1200 bytes")
    print("  bare libsodium    \(Figures.text(packet.bareMicroseconds, 2)) us")
    print("  through a link    \(Figures.text(packet.linkMicroseconds, 2)) us")
    print("  ratio             \(Figures.text(packet.ratio, 2))")
    print("Allocations")
    if let allocations = try AllocationBench.run() {
      for budget in allocations {
        exceeded = exceeded || budget.isExceeded
        let verdict = budget.isExceeded ? "  EXCEEDED" : ""
        print(
          "  \(Style.padded(budget.subject, to: 34))\(Figures.text(budget.measured, 1))"
            + " of at most \(Figures.text(budget.allowed, 1))\(verdict)")
      }
    } else {
      print("  not counted: make bench loads the library that counts them")
    }
    if !quick {
      let call = try await CallBench(seconds: seconds, video: video, audio: audio).run()
      print("A 1:1 call of 640x360 at 30 frames a second, 1000 kbit/s, both sides")
      print("  bare libraries    \(Figures.text(call.bareCores, 3)) cores")
      print("  two nodes         \(Figures.text(call.nodeCores, 3)) cores")
      print("  ratio             \(Figures.text(call.ratio, 2))")
      print(
        "  memory            \(Figures.text(call.megabytesPerNode, 1)) MB for both in one process")
      print("  frames shown      \(call.framesShown) of \(call.framesExpected)")
    }
    if exceeded { throw ExitCode(1) }
  }
}
