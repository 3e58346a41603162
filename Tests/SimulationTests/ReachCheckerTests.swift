import MusterSimulator
import Testing

/// The hole-punching rule of `docs/NAT.md`, and the links that follow from it in a whole network.
struct ReachCheckerTests {
  private func checker(
    _ kinds: [NATKind], members: [Int?], cuts: [[Int]] = [], rendezvous: [Int]? = nil
  ) -> ReachChecker {
    // The last home is that of the rendezvous.
    ReachChecker(
      .init(
        kinds: kinds + [.none], cuts: cuts, members: members,
        rendezvous: rendezvous ?? [kinds.count]))
  }

  @Test func theTableHolds() {
    let kinds: [NATKind] = [.none, .full, .preserving, .random, .blocked]
    let table = ["yyyyn", "yyyyn", "yyynn", "yynnn", "nnnnn"]
    for (one, row) in zip(kinds, table) {
      for (other, cell) in zip(kinds, row) {
        #expect(ReachChecker.canPunch(one, other) == (cell == "y"), "\(one) \(other)")
      }
    }
  }

  @Test func hostsOfOneHomeNeedNothingElse() {
    let checker = checker([.blocked], members: [0, 0], rendezvous: [])
    #expect(checker.isDirect(0, 1) && checker.mustBeLinked(1, 0))
    #expect(!checker.mustBeLinked(0, 0))
  }

  @Test func othersNeedARendezvousThatBothReach() {
    let kinds: [NATKind] = [.full, .full]
    #expect(checker(kinds, members: [0, 1]).isDirect(0, 1))
    for other in [
      checker(kinds, members: [0, 1], rendezvous: []),
      checker(kinds, members: [0, 1], cuts: [[1, 2]]),
    ] {
      #expect(!other.mustBeLinked(0, 1) && other.mayBeLinked(0, 1))
    }
    let apart = checker(kinds, members: [0, 1], cuts: [[0, 1]])
    #expect(!apart.mustBeLinked(0, 1) && !apart.mayBeLinked(0, 1))
  }

  @Test func aRendezvousReachesItself() {
    let checker = checker([.none, .random], members: [0, 1], rendezvous: [0])
    #expect(checker.isDirect(0, 1))
  }

  @Test func aThirdOneRelaysForTwo() {
    let kinds: [NATKind] = [.random, .preserving, .full]
    #expect(!checker(kinds, members: [0, 1]).mayBeLinked(0, 1))
    let three = checker(kinds, members: [0, 1, 2])
    #expect(three.relays(0, 1) == [2] && three.mustBeLinked(0, 1) && !three.isDirect(0, 1))
    #expect(!checker(kinds, members: [0, 1, nil]).mayBeLinked(0, 1))
  }

  @Test func threeHopsAreTooMany() {
    // Homes 0 to 3 form a chain, so a path from 0 to 3 needs two relays.
    let kinds: [NATKind] = [.full, .full, .full, .full]
    let chain = checker(kinds, members: [0, 1, 2, 3], cuts: [[0, 2], [0, 3], [1, 3]])
    #expect(chain.mustBeLinked(0, 2) && chain.mustBeLinked(1, 3))
    #expect(!chain.mustBeLinked(0, 3) && !chain.mayBeLinked(0, 3))
  }
}
