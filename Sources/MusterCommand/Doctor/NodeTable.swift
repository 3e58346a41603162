import Muster

/// The links, paths, queues and counters of a running node as text in columns.
enum NodeTable {
  static func lines(_ report: NodeReport) -> [String] {
    ["node      \(report.id), up for \(Int(report.uptime)) s", ""] + links(report.links)
      + [""] + paths(report.paths) + [""] + queues(report.queues) + [""] + counters(report.counters)
  }

  private static func links(_ links: [NodeReport.Link]) -> [String] {
    guard !links.isEmpty else { return ["links     none"] }
    let title =
      Style.padded("link to", to: 18) + Style.padded("channel", to: 16)
      + Style.padded("phase", to: 12) + Style.padded("path", to: 34) + Style.padded("ms", to: 10)
      + "% lost"
    return [Style.bold(title)]
      + links.map { link in
        let path = link.via.map { "relayed by \($0)" } ?? link.address ?? "-"
        return Style.padded(link.member, to: 18) + Style.padded(link.channel, to: 16)
          + Style.padded(link.phase, to: 12) + Style.padded(path, to: 34)
          + Style.padded(link.rttMs.map { JSONValue.number($0).text } ?? "?", to: 10)
          + JSONValue.number(link.lossPercent).text
      }
  }

  private static func paths(_ paths: [NodeReport.Path]) -> [String] {
    guard !paths.isEmpty else { return ["paths     none"] }
    let title =
      Style.padded("path to", to: 18) + Style.padded("route", to: 34)
      + Style.padded("state", to: 20) + Style.padded("ms", to: 10)
      + Style.padded("kbit/s", to: 10) + Style.padded("queue ms", to: 10)
      + Style.padded("kB sent", to: 12) + "kB received"
    return [Style.bold(title)]
      + paths.map { path in
        let route = path.via.map { "relayed by \($0)" } ?? path.address ?? "-"
        return Style.padded(path.member, to: 18) + Style.padded(route, to: 34)
          + Style.padded(path.validation + (path.inUse ? ", in use" : ""), to: 20)
          + Style.padded(path.rttMs.map { JSONValue.number($0).text } ?? "?", to: 10)
          + Style.padded(Figures.text(path.estimateKbps, 0), to: 10)
          + Style.padded(Figures.text(path.queueMs, 0), to: 10)
          + Style.padded(String(path.bytesOut / 1000), to: 12) + String(path.bytesIn / 1000)
      }
  }

  private static func queues(_ queues: [NodeReport.Queue]) -> [String] {
    let title =
      Style.padded("queue", to: 18) + Style.padded("waiting", to: 10) + "dropped since the start"
    return [Style.bold(title)]
      + queues.map { queue in
        Style.padded(queue.name, to: 18) + Style.padded(String(queue.waiting), to: 10)
          + String(queue.dropped)
      }
  }

  private static func counters(_ record: CounterRecord) -> [String] {
    let width = 2 + record.counters.reduce(8) { max($0, Style.columns($1.name)) }
    return [Style.bold("counters since the start")]
      + record.counters.map { Style.padded($0.name, to: width) + String($0.value) }
  }
}
