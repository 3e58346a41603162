import MusterBase
import MusterCore
import MusterDiscovery
import Testing

struct SolitudeTests {
  private static let address = Address(host: .v4(0x0A00_0007), port: 4711)

  /// The reasons given while a node is alone for a minute, with their times in seconds. `hear` is
  /// called every second.
  private func reasons(
    hasPeers: Bool = false, isOnLANOnly: Bool = true, linked: [Address] = [],
    company: Range<Int> = 0..<0,
    hear: (inout Surroundings, Int) -> Void = { _, _ in }
  ) -> [String] {
    var (solitude, surroundings) = (Solitude(), Surroundings())
    var found: [String] = []
    for second in 0..<60 {
      hear(&surroundings, second)
      let evidence = Solitude.Evidence(
        isAlone: !company.contains(second), surroundings: surroundings, hasPeers: hasPeers,
        isOnLANOnly: isOnLANOnly, linked: linked)
      let now = Instant(nanoseconds: Int64(second) * 1_000_000_000)
      guard let reason = solitude.look(evidence, at: now) else { continue }
      let name =
        switch reason {
        case .otherChannel(Self.address): "other channel"
        case .unanswered(Self.address): "unanswered"
        case .peersSilent: "peers"
        case .nothingHeard: "nothing"
        default: "another address"
        }
      found.append("\(second) \(name)")
    }
    return found
  }

  @Test func anotherPassphraseIsHeard() {
    let hint = reasons { surroundings, second in
      if second % 4 == 0 { surroundings.noteUnreadable(from: Self.address) }
    }
    #expect(hint == ["8 other channel"])
    // A member of another channel may be in channels that this node is not in.
    let member = reasons(linked: [Self.address]) { surroundings, _ in
      surroundings.noteUnreadable(from: Self.address)
    }
    #expect(member.isEmpty)
    // Twice may be what is left of a run that has just ended.
    let noHint = reasons { surroundings, second in
      if second < 2 { surroundings.noteUnreadable(from: Self.address) }
    }
    #expect(noHint.isEmpty)
  }

  @Test func aFirewallIsSeenByChallengesInVain() {
    let hint = reasons { surroundings, second in
      if second % 5 == 0 { surroundings.challenged(Self.address) }
    }
    #expect(hint == ["10 unanswered"])
    let answered = reasons { surroundings, second in
      surroundings.challenged(Self.address)
      surroundings.found()
    }
    #expect(answered.isEmpty)
  }

  @Test func namedPeersAreMissed() {
    #expect(reasons(hasPeers: true) == ["12 peers"])
    #expect(reasons(hasPeers: true, isOnLANOnly: false) == ["12 peers"])
  }

  @Test func silenceIsMentionedLast() {
    #expect(reasons() == ["30 nothing"])
    #expect(reasons(isOnLANOnly: false).isEmpty)
  }

  /// The time counts anew when the others have gone, and what was said is not said again.
  @Test func companyEndsSolitude() {
    #expect(reasons(company: 5..<20) == ["50 nothing"])
    let hint = reasons(company: 20..<25) { surroundings, _ in
      surroundings.noteUnreadable(from: Self.address)
    }
    #expect(hint == ["8 other channel"])
  }
}
