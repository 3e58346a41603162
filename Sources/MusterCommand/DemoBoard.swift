import Muster
import MusterSystem

/// The demo's display of the latency and quality between each pair of nodes.
final class DemoBoard: Sendable {
  private let nodes: [DemoNode]
  /// Whether the board is redrawn in place, as on a terminal; otherwise it is printed every 3 s.
  private let drawsInPlace: Bool

  init(nodes: [DemoNode], drawsInPlace: Bool) {
    self.nodes = nodes
    self.drawsInPlace = drawsInPlace
  }

  /// Displays the call until the user interrupts the demo or `seconds` have passed.
  func watch(for seconds: Double) async throws {
    print("Three nodes on this machine, one call. Nothing leaves the loopback interface.\n")
    var hasShownPage = false
    var browser: Browser?
    defer { browser?.close() }
    var lines = 0
    let rounds = Int((seconds * 2).rounded(.up))
    for round in 0..<rounds where !Interruption.isRequested {
      try await Task.sleep(for: .milliseconds(500))
      if let failed = nodes.first(where: { $0.report.hasEnded }) {
        let code = failed.exitCode() ?? 1
        throw MusterError(
          "the node of \(failed.part.name) ended with code \(code)",
          hint: "its own words stand above; muster doctor checks this machine")
      }
      if !hasShownPage, let page = nodes.compactMap(\.report.page).first {
        hasShownPage = true
        print("Watch it in a browser: \(page)\n")
        browser = Browser.open(page)
      }
      guard hasShownPage else { continue }
      if drawsInPlace {
        if lines > 0 { print("\u{1B}[\(lines)A\u{1B}[J", terminator: "") }
        // A line that wraps would take two rows, and only one of them would be drawn over.
        let width = RawTerminal.size.columns
        let board = board()
        for line in board { print(line.style(String(Style.prefix(line.text, columns: width)))) }
        lines = board.count
      } else if round % 6 == 5 {
        print(board().map { $0.style($0.text) }.joined(separator: "\n"), "\n")
      }
      fflush(nil)
    }
  }

  private typealias Line = (text: String, style: (String) -> String)

  /// The table, in the 80 columns of an ordinary terminal.
  private func board() -> [Line] {
    let title =
      Style.padded("receiver", to: 10) + Style.padded("sender", to: 8)
      + Style.padded("video", to: 13) + Style.padded("kbit/s", to: 8)
      + Style.padded("frames", to: 8) + Style.padded("freezes", to: 9)
      + Style.padded("delay p50/p95", to: 15) + "roundtrip"
    var rows: [Line] = [(title, Style.bold)]
    for node in nodes {
      let report = node.report
      let peers = report.peers.sorted {
        (report.names[$0.member] ?? "") < (report.names[$1.member] ?? "")
      }
      for peer in peers { rows.append((row(node, report, peer), { $0 })) }
      let usage = "\(Int(report.cpu * 100)) % of a core, \(Int(report.memory)) MB"
      rows.append((Style.padded(node.part.name, to: 10) + usage, Style.dim))
    }
    return rows
  }

  private func row(
    _ node: DemoNode, _ report: DemoNode.Report, _ peer: StatisticsRecord.Peer
  ) -> String {
    func whole(_ value: Double?) -> String { Figures.text(value, 0) }
    let latency = peer.latencyMs.map { "\(whole($0.p50)) / \(whole($0.p95)) ms" } ?? "-"
    return Style.padded(node.part.name, to: 10)
      + Style.padded(report.names[peer.member] ?? "?", to: 8)
      + Style.padded(peer.received?.layer ?? "-", to: 13)
      + Style.padded(whole(peer.received?.kbps), to: 8)
      + Style.padded(peer.received.map { String($0.frames) } ?? "-", to: 8)
      + Style.padded(peer.received.map { String($0.freezes) } ?? "-", to: 9)
      + Style.padded(latency, to: 15)
      + (peer.rttMs.map { "\(Figures.text($0, 2)) ms" } ?? "-")
  }

  /// Prints a summary of the call; returns true if every node received video of all other nodes.
  func conclude() -> Bool {
    let seen = nodes.map { $0.report.firstFrames.count }
    let expected = nodes.count - 1
    let everyone = seen.allSatisfy { $0 >= expected }
    print("")
    for node in nodes {
      let report = node.report
      let firsts = report.firstFrames.values.map { "\(Int(($0 * 1000).rounded())) ms" }
      print(
        "\(node.part.name) saw \(report.firstFrames.count) of \(expected) others"
          + (firsts.isEmpty ? "" : ", first frames after \(firsts.joined(separator: " and "))"))
    }
    print(everyone ? "Everyone saw everyone." : "Not everyone saw everyone: try muster doctor.")
    return everyone
  }
}
