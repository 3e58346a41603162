import MusterBase
import MusterSimulator
import Testing

/// Members in good standing, and an adversary with many keys from one invite.
struct AdversaryTests {
  @Test(arguments: ChannelKind.allCases)
  func anAdversaryThatDoesNothingDisturbsNobody(channel: ChannelKind) async {
    let results = await Tier.run(Tier.seeds(1, of: 10)) { seed in
      let options = AdversaryOptions(seed: seed, channel: channel, tactics: [], removes: false)
      return AdversarySimulation.run(options).violation
    }
    for (seed, violation) in results {
      #expect(violation == nil, "seed \(seed): \(String(describing: violation))")
    }
  }

  @Test(arguments: [AdversaryTactic.presences, .joinings, .grants, .unknown])
  func whatCountsForItsAuthorAloneHarmsNobody(tactic: AdversaryTactic) {
    for seed in Tier.seeds(1, of: 2) {
      let options = AdversaryOptions(seed: seed, tactics: [tactic], removes: false)
      let violation = AdversarySimulation.run(options).violation
      #expect(violation == nil, "seed \(seed): \(String(describing: violation))")
    }
  }

  /// However many keys came by the invite, and whether their owner has confirmed them or not.
  @Test(arguments: [1, 4, 0] as [UInt32])
  func aRevokedInviteEndsTheAccessOfAllWhoCameByIt(uses: UInt32) async {
    let results = await Tier.run(Tier.seeds(1, of: 10)) { seed in
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

  /// Floods that a channel withstands, since entries without the right to them are not kept, and
  /// all keys of one invite share one quota.
  @Test(arguments: [
    Flood(channel: .created, tactics: [.claims]), Flood(channel: .created, tactics: [.ends]),
    Flood(channel: .created, tactics: [.claims, .keys], uses: 0),
    Flood(channel: .created, tactics: [.staleCalls], entriesPerSecond: 50),
    Flood(channel: .created, tactics: [.messages], entriesPerSecond: 500),
    Flood(channel: .open, tactics: [.ends]), Flood(channel: .created, tactics: [.groundKeys]),
  ])
  func aFloodTakesNothingFromMembers(flood: Flood) async {
    let results = await Tier.run(Tier.seeds(1, of: 4)) { flood.violation(seed: $0) }
    for (seed, violation) in results {
      #expect(violation == nil, "seed \(seed): \(String(describing: violation))")
    }
  }

  /// A member that replays what others sent, asks for everything again and again, or forges entries
  /// disturbs nobody, gets little for it and makes others do little.
  @Test(arguments: [AdversaryTactic.replays, .questions, .forgeries])
  func floodsCostLittle(tactic: AdversaryTactic) {
    for seed in Tier.seeds(1, of: 4) {
      func run(_ tactics: [AdversaryTactic]) -> AdversaryResult {
        AdversarySimulation.run(
          AdversaryOptions(seed: seed, tactics: tactics, entriesPerSecond: 500, removes: false))
      }
      let result = run([tactic])
      #expect(result.violation == nil, "seed \(seed)")
      // Without budgets, members answer questions with up to 1.4 times their bytes.
      let received = "seed \(seed): \(result.bytesReceived) bytes for \(result.bytesSent)"
      #expect(result.bytesSent > 100_000)
      #expect(result.bytesReceived < result.bytesSent / 3, "\(received)")
      // Its keys show themselves again and again whatever it does, and members follow that.
      let most = run([]).steps * 3 / 2
      #expect(result.steps < most, "seed \(seed): \(result.steps) steps, \(most) at most")
    }
  }

  @Test(arguments: PlantedWeakness.allCases)
  func aPlantedWeaknessIsFound(weakness: PlantedWeakness) {
    let known: UInt64 =
      switch weakness {
      case .retentionByCounter: 21
      case .unlimitedInvites: 7
      case .orderedUses: 2
      case .gossipBeforeRole: 3
      case .callsWithoutLeader: 7
      }
    let violation = Tier.hunt(from: known).lazy.compactMap { seed in
      var options = AdversaryOptions(seed: seed)
      options.weakness = weakness
      // It shows only if the adversary looks for it, which few of the runs of all tactics draw.
      if weakness == .orderedUses { (options.channel, options.tactics) = (.created, [.groundKeys]) }
      return AdversarySimulation.run(options).violation
    }.first
    let checkers: [PlantedWeakness: String] = [
      .retentionByCounter: "promise", .unlimitedInvites: "access", .gossipBeforeRole: "access",
      .callsWithoutLeader: "promise", .orderedUses: "promise",
    ]
    #expect(violation?.checker == checkers[weakness])
  }

  /// What an adversary floods a channel with, under the highest counters.
  struct Flood: Sendable {
    var channel: ChannelKind
    var tactics: [AdversaryTactic]
    var uses: UInt32?
    var entriesPerSecond = 100

    /// The violation in the run with this seed; nil for none.
    func violation(seed: UInt64) -> Violation? {
      AdversarySimulation.run(
        AdversaryOptions(
          seed: seed, channel: channel, tactics: tactics, uses: uses, counters: .highest,
          entriesPerSecond: entriesPerSecond, removes: false)
      ).violation
    }
  }
}
