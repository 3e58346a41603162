import MusterBase

extension FailureDetector {
  /// The violated invariants of this state (for tests); empty if all hold.
  package func checkInvariants() -> [String] {
    var faults: [String] = []
    if health < 0 || health > configuration.healthLimit { faults.append("a health of \(health)") }
    if peers.isEmpty != (nextProbeAt == nil) { faults.append("probes without neighbours") }
    if indirectProbes.count > Self.indirectProbeLimit {
      faults.append("too many probes for others")
    }
    for probe in indirectProbes {
      if peers.index(of: probe.target) == nil || peers.index(of: probe.requester) == nil {
        faults.append("a probe for or of somebody who is no neighbour")
      }
      if probe.until < probe.since { faults.append("a probe that ends before it begins") }
    }
    for (id, peer) in peers {
      if peer.suspectedAt != nil, peer.probedAt == nil {
        faults.append("a suspicion without a probe")
      }
      let doubts = peer.confirmedBy.sorted()
      if doubts.contains(id) || zip(doubts, doubts.dropFirst()).contains(where: { $0 == $1 }) {
        faults.append("a neighbour confirms a suspicion twice, or its own")
      }
      if doubts.contains(where: { peers.index(of: $0) == nil }) {
        faults.append("a suspicion confirmed by one who is no neighbour")
      }
    }
    return faults
  }
}
