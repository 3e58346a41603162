import Muster
import MusterBase
import MusterChannel
import MusterDiscovery
import MusterNetwork

/// This host's reachability beyond the local network, as observed by rendezvous servers.
struct ReachabilityReport: Sendable {
  /// The reachability in one address family.
  struct Family: Sendable {
    var isIPv6: Bool
    /// The answers of rendezvous servers with addresses of this family.
    var reports: [RendezvousProbe.Report]
    /// The host's NAT mapping; nil if no server answered.
    var mapping: NATMapping?

    /// Whether several servers were queried and none answered, not even with a refusal.
    var isBlocked: Bool {
      let hosts = reports.compactMap(\.address?.hostText).reduce(into: [String]()) {
        if !$0.contains($1) { $0.append($1) }
      }
      return hosts.count > 1 && reports.allSatisfy { $0.outcome == .silent }
    }

    var name: String { isIPv6 ? "IPv6" : "IPv4" }
  }

  private let reports: [RendezvousProbe.Report]
  /// Whether the user named a rendezvous server; a missing answer is then a failure.
  private let isAskedFor: Bool
  private let families: [Family]
  private let gateway: [Finding]

  /// Queries the given and the remembered rendezvous servers; then, with `mapsPorts`, also the
  /// gateway if this host is behind a NAT. Takes nine seconds at most.
  static func ask(
    _ given: [String], remembered: [String], interfaces: [String], mapsPorts: Bool
  ) async throws(MusterError) -> ReachabilityReport {
    let probe = try await RendezvousProbe.ask(given, remembered: remembered)
    let families = [false, true].map { isIPv6 in
      Family(
        isIPv6: isIPv6, reports: probe.reports.filter { $0.address?.isIPv6 == isIPv6 },
        mapping: probe.mapping(ipv6: isIPv6))
    }.filter { !$0.reports.isEmpty }
    var gateway: [Finding] = []
    if mapsPorts, let mapping = probe.mapping(ipv6: false), mapping.kind != .none,
      // The port of the probe, whose socket is closed by now, so the test mapping affects no node
      // on this machine.
      let port = probe.observations.first(where: { !$0.local.isIPv6 })?.local.port
    {
      gateway = await Diagnostics.gateway(port: port, interfaces: interfaces, seenAt: mapping)
    }
    return ReachabilityReport(
      reports: probe.reports, isAskedFor: !given.isEmpty, families: families, gateway: gateway)
  }

  // MARK: Findings

  var findings: [Finding] {
    guard !reports.isEmpty else {
      return [
        Finding(
          subject: "rendezvous", verdict: .note, fact: "none given, and none remembered",
          advice: "to see how others beyond this network are reached: --rendezvous HOST:PORT")
      ]
    }
    var findings = reports.map { $0.finding(besidesOthers: reports.contains(where: \.hasAnswered)) }
    if let nobody { findings.append(nobody) }
    for family in families { findings += family.findings }
    return findings + gateway
  }

  /// The finding that no rendezvous server answers; nil if a server answers.
  private var nobody: Finding? {
    guard !reports.contains(where: \.hasAnswered) else { return nil }
    let verdict: Finding.Verdict = isAskedFor ? .bad : .note
    let outcomes = reports.map(\.outcome)
    if outcomes.allSatisfy({ $0 == .unresolved }) {
      return Finding(
        subject: "UDP", verdict: verdict, fact: "nobody could be asked: no name resolves",
        advice: "check the names and this network's name server, or give addresses")
    }
    if families.contains(where: \.isBlocked) {
      return Finding(
        subject: "UDP", verdict: verdict, fact: "UDP does not get out: no rendezvous answers",
        advice: "let UDP out in the firewall, or use another network: Muster speaks no TCP")
    }
    if outcomes.contains(.silent) {
      return Finding(
        subject: "UDP", verdict: verdict,
        fact: "no rendezvous answers: down, or UDP does not get out",
        advice: "ask a second one on another machine, to know which: --rendezvous HOST:PORT")
    }
    if outcomes.contains(.refused) || outcomes.contains(.invalidResponse) {
      return Finding(
        subject: "UDP", verdict: verdict, fact: "no rendezvous answers",
        advice: "start muster rendezvous there; if it runs, let UDP out in the firewall here")
    }
    return Finding(
      subject: "UDP", verdict: verdict, fact: "no rendezvous can be reached from this machine",
      advice: "check its network, and that its firewall lets UDP out")
  }

  // MARK: JSON

  /// The `nat` field of `doctor --json`, as documented in `docs/EVENTS.md`.
  var json: JSONValue {
    guard !reports.isEmpty else { return .null }
    func family(_ isIPv6: Bool) -> JSONValue {
      families.first { $0.isIPv6 == isIPv6 }?.json ?? .null
    }
    return .object([
      ("ipv4", family(false)), ("ipv6", family(true)),
      ("rendezvous", .array(reports.map(\.json))),
    ])
  }
}

extension ReachabilityReport.Family {
  fileprivate var json: JSONValue {
    let kind = mapping?.kind.rawValue ?? (isBlocked ? "blocked" : nil)
    return .object([
      ("kind", kind.map { .string($0) } ?? .null), ("certain", .bool(mapping?.isCertain ?? false)),
      ("publicAddresses", .array((mapping?.outside ?? []).map { .string($0.hostText) })),
    ])
  }
}

extension RendezvousProbe.Report {
  /// The server's name for display, sanitised because names can come from invites.
  private var shownName: String {
    let safe = DisplayText.sanitized(name, limit: 128)
    guard let address, "\(address)" != name else { return safe }
    return "\(safe) (\(address.hostText))"
  }

  fileprivate func finding(besidesOthers othersAnswer: Bool) -> Finding {
    func note(_ fact: String, _ advice: String) -> Finding {
      Finding(
        subject: "rendezvous", verdict: .note, fact: "\(shownName) \(fact)", advice: advice)
    }
    switch outcome {
    case .answered(let seen, let roundTrip):
      let milliseconds = Int64((roundTrip.inMilliseconds * 10).rounded())
      return Finding(
        subject: "rendezvous", verdict: .good,
        fact: "\(shownName) answers in \(milliseconds / 10).\(milliseconds % 10) ms, sees \(seen)")
    case .unresolved:
      return note("does not resolve", "check the spelling, and this network's name server")
    case .invalidResponse:
      return note(
        "answers, but not as a rendezvous of this version",
        "check the port; update muster here or there")
    case .refused:
      return note(
        "refuses: nobody listens there, or a firewall says so",
        "check the port, and that muster rendezvous runs there")
    case .unreachable(let reason):
      return note(
        "cannot be reached: \(reason)",
        address?.isIPv6 == true ? "" : "check this machine's network and firewall")
    case .silent:
      return note(
        "does not answer",
        othersAnswer ? "check that it runs, and that a firewall there lets its UDP port in" : "")
    }
  }

  fileprivate var json: JSONValue {
    var (seen, roundTrip) = (JSONValue.null, JSONValue.null)
    if case .answered(let address, let duration) = outcome {
      (seen, roundTrip) = (.string("\(address)"), .number(duration.inMilliseconds))
    }
    return .object([
      ("name", .string(name)), ("address", address.map { .string("\($0)") } ?? .null),
      ("outcome", .string(outcome.word)), ("answers", .bool(hasAnswered)), ("rttMs", roundTrip),
      ("seen", seen),
    ])
  }
}

extension RendezvousProbe.Outcome {
  fileprivate var word: String {
    switch self {
    case .unresolved: "unresolved"
    case .answered: "answered"
    case .invalidResponse: "invalid-response"
    case .refused: "refused"
    case .unreachable: "unreachable"
    case .silent: "silent"
    }
  }
}
