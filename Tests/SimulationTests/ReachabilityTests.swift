import MusterSimulator
import Testing

/// The rule of `docs/NAT.md`, and who follows from it for a whole network.
struct ReachabilityTests {
  private func reachability(
    _ kinds: [NATKind], members: [Int?], cuts: [[Int]] = [], rendezvous: [Int]? = nil
  ) -> Reachability {
    // The last home is a rendezvous's.
    Reachability(
      .init(
        kinds: kinds + [.none], cuts: cuts, members: members,
        rendezvous: rendezvous ?? [kinds.count]))
  }

  @Test func theTableHolds() {
    let kinds: [NATKind] = [.none, .full, .preserving, .random, .blocked]
    let table = ["yyyyn", "yyyyn", "yyynn", "yynnn", "nnnnn"]
    for (one, row) in zip(kinds, table) {
      for (other, cell) in zip(kinds, row) {
        #expect(Reachability.canPunch(one, other) == (cell == "y"), "\(one) \(other)")
      }
    }
  }

  @Test func thoseOfOneHomeNeedNothingElse() {
    let reachability = reachability([.blocked], members: [0, 0], rendezvous: [])
    #expect(reachability.isDirect(0, 1) && reachability.mustBeLinked(1, 0))
    #expect(!reachability.mustBeLinked(0, 0))
  }

  @Test func othersNeedARendezvousThatBothReach() {
    let kinds: [NATKind] = [.full, .full]
    #expect(reachability(kinds, members: [0, 1]).isDirect(0, 1))
    for other in [
      reachability(kinds, members: [0, 1], rendezvous: []),
      reachability(kinds, members: [0, 1], cuts: [[1, 2]]),
    ] {
      #expect(!other.mustBeLinked(0, 1) && other.mayBeLinked(0, 1))
    }
    let apart = reachability(kinds, members: [0, 1], cuts: [[0, 1]])
    #expect(!apart.mustBeLinked(0, 1) && !apart.mayBeLinked(0, 1))
  }

  @Test func whoIsARendezvousReachesItself() {
    let reachability = reachability([.none, .random], members: [0, 1], rendezvous: [0])
    #expect(reachability.isDirect(0, 1))
  }

  @Test func aThirdOneRelaysForTwo() {
    let kinds: [NATKind] = [.random, .preserving, .full]
    #expect(!reachability(kinds, members: [0, 1]).mayBeLinked(0, 1))
    let three = reachability(kinds, members: [0, 1, 2])
    #expect(three.relays(0, 1) == [2] && three.mustBeLinked(0, 1) && !three.isDirect(0, 1))
    #expect(!reachability(kinds, members: [0, 1, nil]).mayBeLinked(0, 1))
  }

  @Test func threeHopsAreTooMany() {
    // A chain: 0 and 3 have two others between them.
    let kinds: [NATKind] = [.full, .full, .full, .full]
    let chain = reachability(kinds, members: [0, 1, 2, 3], cuts: [[0, 2], [0, 3], [1, 3]])
    #expect(chain.mustBeLinked(0, 2) && chain.mustBeLinked(1, 3))
    #expect(!chain.mustBeLinked(0, 3) && !chain.mayBeLinked(0, 3))
  }
}
