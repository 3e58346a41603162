import ArgumentParser
import Muster
import MusterSystem

/// The command `muster ping`, which measures round trips to a member over each path of the running
/// node.
struct PingCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ping",
    abstract: "Measure the round trips to a member, over each path to it.",
    discussion: """
      Asks the node that runs on the data directory. A path leads directly to the address of the \
      member, or through another member that relays.
      """)

  @Argument(help: "The member: an id or a name, or the beginning of one.")
  var member: String

  @Option(help: "The channel (default: every channel that the member is in).")
  var channel: String?

  @Option(help: ArgumentHelp("How many round trips to measure.", valueName: "n"))
  var count = 5

  @OptionGroup var options: DataOptions

  private static let counts = 1...1000
  private static let interval = Duration.milliseconds(500)

  func run() async throws {
    guard Self.counts.contains(count) else {
      throw MusterError(
        "--count \(count) is out of range", hint: "give 1 to \(Self.counts.upperBound)",
        kind: .usage)
    }
    var request = Administration.Request(.ping)
    request.member = member
    request.channel = channel
    var report = PingReport()
    for number in 1...count {
      if number > 1 { try await Task.sleep(for: Self.interval) }
      guard let reply = try await options.perform(request).ping else {
        throw MusterError("no answer came of it", hint: "update muster and the running node")
      }
      report.add(reply)
      // Later pings go to the same member, even if another member with the same name joins.
      request.member = reply.member
      if !options.json { for line in report.lines(of: reply, number: number) { print(line) } }
      fflush(nil)
    }
    if options.json { return print(report.json.text) }
    for line in report.summary { print(line) }
  }
}

/// The result of a series of pings.
package struct PingReport {
  package private(set) var member = ""
  package private(set) var name = ""
  package private(set) var paths: [Path] = []

  /// The round trips over one path.
  package struct Path: Encodable, Equatable {
    package var channel: String
    package var address: String?
    package var via: String?
    package var viaName: String?
    package var sent = 0
    /// The round-trip times of answered pings, in milliseconds.
    package var roundTrips: [Double] = []

    private enum CodingKeys: String, CodingKey {
      case channel, address, via, viaName, sent, received, lossPercent, minMs, avgMs, maxMs
    }

    package var lossPercent: Double {
      sent == 0 ? 0 : 100 * Double(sent - roundTrips.count) / Double(sent)
    }

    package var average: Double? {
      roundTrips.isEmpty ? nil : roundTrips.reduce(0, +) / Double(roundTrips.count)
    }

    package func encode(to encoder: any Encoder) throws {
      var fields = encoder.container(keyedBy: CodingKeys.self)
      try fields.encode(channel, forKey: .channel)
      try fields.encodeIfPresent(address, forKey: .address)
      try fields.encodeIfPresent(via, forKey: .via)
      try fields.encodeIfPresent(viaName, forKey: .viaName)
      try fields.encode(sent, forKey: .sent)
      try fields.encode(roundTrips.count, forKey: .received)
      try fields.encode(lossPercent, forKey: .lossPercent)
      try fields.encodeIfPresent(roundTrips.min(), forKey: .minMs)
      try fields.encodeIfPresent(average, forKey: .avgMs)
      try fields.encodeIfPresent(roundTrips.max(), forKey: .maxMs)
    }
  }

  package init() {}

  package mutating func add(_ reply: PingReply) {
    (member, name) = (reply.member, reply.name)
    for one in reply.paths {
      let known = paths.firstIndex {
        $0.channel == one.channel && $0.address == one.address && $0.via == one.via
      }
      let index = known ?? paths.count
      if known == nil {
        paths.append(
          Path(
            channel: one.channel, address: one.address, via: one.via, viaName: one.viaName))
      }
      paths[index].sent += 1
      if let roundTrip = one.rttMs { paths[index].roundTrips.append(roundTrip) }
    }
  }

  // MARK: Text output

  package func lines(of reply: PingReply, number: Int) -> [String] {
    reply.paths.map { path in
      let result = path.rttMs.map { "\(Self.number($0)) ms" } ?? "no answer"
      let route = Self.route(path.address, path.via, path.viaName)
      return "\(number)  \(result)  \(route), in \(path.channel)"
    }
  }

  package var summary: [String] {
    ["", "\(name) (\(member))"]
      + paths.map { path in
        let figures =
          path.average.map { average in
            "min \(Self.number(path.roundTrips.min() ?? 0)), avg \(Self.number(average)), "
              + "max \(Self.number(path.roundTrips.max() ?? 0)) ms"
          } ?? "no answer"
        let route = Self.route(path.address, path.via, path.viaName)
        return "  \(route), in \(path.channel): \(figures), "
          + "\(path.roundTrips.count) of \(path.sent) answered, "
          + "\(Self.number(path.lossPercent)) % lost"
      }
  }

  private static func route(_ address: String?, _ via: String?, _ viaName: String?) -> String {
    guard let via else { return "direct to \(address ?? "?")" }
    return "relayed by " + (viaName.map { "\($0) (\(via))" } ?? via)
  }

  private static func number(_ value: Double) -> String {
    String(JSONValue.number(value).text.dropLast(2))
  }

  // MARK: JSON output

  package var json: JSONValue {
    .object([
      ("member", .string(member)), ("name", .string(name)),
      ("paths", .array(paths.map { JSONValue(encoding: $0) })),
    ])
  }
}
