import MusterBase
import MusterSimulator
import Testing

/// Members in good standing, and an adversary with many keys from one invite.
struct AdversaryTests {
  @Test(arguments: ChannelKind.allCases)
  func anAdversaryThatDoesNothingDisturbsNobody(channel: ChannelKind) async {
    let results = await run(1...10) { seed in
      let options = AdversaryOptions(seed: seed, channel: channel, tactics: [], removes: false)
      return AdversarySimulation.run(options).violation
    }
    for (seed, violation) in results {
      #expect(violation == nil, "seed \(seed): \(String(describing: violation))")
    }
  }

  @Test(arguments: [AdversaryTactic.presences, .joinings, .grants, .unknown])
  func whatCountsForItsAuthorAloneHarmsNobody(tactic: AdversaryTactic) {
    for seed in 1...2 as ClosedRange<UInt64> {
      let options = AdversaryOptions(seed: seed, tactics: [tactic], removes: false)
      let violation = AdversarySimulation.run(options).violation
      #expect(violation == nil, "seed \(seed): \(String(describing: violation))")
    }
  }

  /// However many keys came by the invite, and whether their owner has confirmed them or not.
  @Test(arguments: [1, 4, 0] as [UInt32])
  func aRevokedInviteEndsTheAccessOfAllWhoCameByIt(uses: UInt32) async {
    let results = await run(1...10) { seed in
      let options = AdversaryOptions(
        seed: seed, channel: .created, tactics: [], uses: uses, removes: true)
      return AdversarySimulation.run(options).violation
    }
    for (seed, violation) in results {
      #expect(violation == nil, "seed \(seed): \(String(describing: violation))")
    }
  }

  @Test func theSeedDeterminesTheRun() {
    let options = AdversaryOptions(seed: 11, tactics: [.claims, .equivocations])
    let result = AdversarySimulation.run(options)
    #expect(result == AdversarySimulation.run(options))
    #expect(result.entries > 100)
    #expect(result.digest != AdversarySimulation.run(AdversaryOptions(seed: 12)).digest)
  }

  /// Runs in which the channel breaks its promise, and the checker that finds it.
  struct Weakness: Sendable {
    var channel: ChannelKind
    var tactics: [AdversaryTactic]

    /// The first violation in a few seeds; nil for none.
    var violation: Violation? {
      for seed in 1...5 as ClosedRange<UInt64> {
        let options = AdversaryOptions(
          seed: seed, channel: channel, tactics: tactics, counters: .highest,
          entriesPerSecond: tactics.contains(.messages) ? 500 : 100, removes: false)
        if let violation = AdversarySimulation.run(options).violation { return violation }
      }
      return nil
    }
  }

  /// What a channel does not withstand yet. `withKnownIssue` fails once it does.
  @Test(arguments: [
    Weakness(channel: .created, tactics: [.claims]),
    Weakness(channel: .created, tactics: [.ends]),
    Weakness(channel: .open, tactics: [.ends]),
    Weakness(channel: .created, tactics: [.messages]),
  ])
  func aWeaknessIsFound(weakness: Weakness) {
    let violation = weakness.violation
    withKnownIssue { #expect(violation == nil) }
    #expect(violation.map(\.checker) ?? "promise" == "promise")
  }
}
