import Muster
import MusterBase
import MusterChannel
import MusterDiscovery

/// The NAT type and its consequences for reachability, according to the table in `docs/NAT.md`.
extension ReachabilityReport.Family {
  private static let forwarding =
    "have a third member in the call, who relays; or fix the port, --listen 0.0.0.0:PORT, and"
    + " forward it in the router"
  private static let secondOne = "a second rendezvous on another machine tells for sure"

  var findings: [Finding] {
    guard let mapping else { return [] }
    var findings = [nat(mapping)]
    if mapping.isShared {
      findings.append(
        Finding(
          subject: "provider", verdict: .note,
          fact: "shares an address between households (100.64.0.0/10): a second NAT",
          advice: "a port forwarded in your own router does not help; IPv6 does"))
    }
    if mapping.outside.count > 1, !mapping.isLocal {
      findings.append(
        Finding(
          subject: "uplinks (\(name))", verdict: .note,
          fact: "several: links may break when the network changes between them",
          advice: "where that happens, leave it one of them"))
    }
    return findings + [punching(mapping)]
  }

  private func nat(_ mapping: NATMapping) -> Finding {
    let outside = mapping.outside.map(\.hostText).joined(separator: " and ")
    func finding(_ fact: String, _ advice: String = "") -> Finding {
      Finding(
        subject: "NAT (\(name))", verdict: mapping.isCertain ? .good : .note, fact: fact,
        advice: advice)
    }
    let same = mapping.isCertain ? "the same for everyone" : "probably the same for everyone"
    let advice = mapping.isCertain ? "" : Self.secondOne
    switch mapping.kind {
    case .none where mapping.isLocal:
      return finding(
        "none up to the rendezvous, which are near: they see \(outside)",
        "one on the internet would tell what lies beyond this network")
    case .none: return finding("none: others see this machine's own address \(outside)")
    case .portKept: return finding("others see \(outside) and the port as here, \(same)", advice)
    case .onePort: return finding("others see \(outside) and another port, \(same)", advice)
    case .portPerDestination:
      var each = finding("others see \(outside) and everyone another port (symmetric)")
      each.verdict = .note
      return each
    case .unknown:
      return finding("others see \(outside) and another port, perhaps everyone another", advice)
    }
  }

  /// The prospects of hole punching with other hosts, and the remedies where it fails.
  private func punching(_ mapping: NATMapping) -> Finding {
    func finding(_ verdict: Finding.Verdict, _ fact: String, _ advice: String = "") -> Finding {
      Finding(subject: "punching (\(name))", verdict: verdict, fact: fact, advice: advice)
    }
    switch mapping.kind {
    case .none:
      return finding(
        mapping.isLocal ? .note : .good,
        mapping.isLocal
          ? "not needed towards hosts of this network; what lies beyond is not known"
          : "not needed: everyone can reach this machine, unless a firewall keeps them out")
    case .portKept, .onePort:
      return finding(
        mapping.isCertain ? .good : .note,
        "\(mapping.isCertain ? "works" : "should work"), except with those whose router gives"
          + " everyone another port",
        "for those: \(Self.forwarding)")
    case .portPerDestination:
      return finding(
        .note, "works only with those whom anyone can reach: no NAT, or a forwarded port",
        "for the rest: \(Self.forwarding)")
    case .unknown:
      return finding(
        .note, "cannot be told from one rendezvous", "where it fails: \(Self.forwarding)")
    }
  }
}
