import MusterBase
import MusterChannel
import MusterWire

/// The parameters of a run, drawn from the seed before the run begins.
struct AdversaryScenario: Sendable {
  static let fewestNodes = 3
  static let mostNodes = 6
  /// The number of keys that the adversary has at a time.
  static let keyLimit = 64

  /// The number of members in good standing.
  let count: Int
  let kind: ChannelKind
  let settings: ChannelSettings
  /// Their roles, by index; the first is the owner of a created channel.
  let roles: [Role]
  /// The role in the adversary's invite.
  let invitedAs: Role
  /// The members that came by the adversary's invite; the owner's node is away until
  /// `AdversarySimulation.returnAt` then.
  let guests: [Int]
  /// The number of keys that the adversary's invite permits; 0 for any number.
  let uses: UInt32
  let tactics: [AdversaryTactic]
  let counters: AdversaryCounters
  /// The number of keys that the adversary has at a time, and how many of them have links.
  let keys: Int
  let linkedKeys: Int
  /// The number of entries, replays and questions of the adversary per second.
  let entriesPerSecond: Int
  /// The member that crashes and returns during the attack; nil for none.
  let restarted: Int?
  /// Whether the initiator ends the call during the attack, so that the members start another.
  let endsCall: Bool
  /// Whether the owner removes the adversary with its invite; the adversary tries to come back.
  let removes: Bool

  init(_ options: AdversaryOptions, _ prng: inout PRNG) {
    let count = Self.fewestNodes + prng.below(Self.mostNodes - Self.fewestNodes + 1)
    self.count = count
    let isCreated = prng.chance(0.8)
    let kind = options.channel ?? (isCreated ? .created : .open)
    self.kind = kind
    var drawn: [Role] = [.owner, .presenter]
    while drawn.count < count { drawn.append(prng.one(of: [.consumer, .attendee, .presenter])) }
    let invitedAs: Role = prng.chance(0.7) ? .consumer : .attendee
    self.invitedAs = invitedAs
    let drawnUses = prng.one(of: [1, 4, 0] as [UInt32])
    // In an open channel everyone may lead calls, and more than `Limits.authors` keys break it.
    let possible = AdversaryTactic.allCases.filter {
      ![.staleCalls, .replays, .questions, .forgeries, .groundKeys].contains($0)
        && (kind == .created || $0 != .claims && $0 != .keys)
    }
    let some = possible.filter { _ in prng.chance(0.25) }
    let one = prng.one(of: possible)
    var tactics = options.tactics ?? (some.isEmpty ? [one] : some)
    let drawnCounters = prng.one(of: AdversaryCounters.allCases)
    counters = options.counters ?? drawnCounters
    keys = prng.chance(0.5) ? 1 + prng.below(8) : 1 + prng.below(Self.keyLimit)
    linkedKeys = min(keys, 1 + prng.below(4))
    let drawnRate = prng.one(of: [10, 50, 150, 500])
    entriesPerSecond = options.entriesPerSecond ?? drawnRate
    let restarts = prng.chance(0.5)
    let index = 1 + prng.below(count - 1)
    restarted = restarts ? index : nil
    let endsCall = prng.chance(0.5)
    // In an open channel everyone may start calls, and end those for all.
    self.endsCall = endsCall && kind == .created
    let removes = prng.chance(0.5)
    let sitsInStaleCall = prng.chance(0.25)
    // In an open channel the adversary may lead that call itself.
    if options.tactics == nil, sitsInStaleCall, kind == .created { tactics.append(.staleCalls) }
    // Drawn apart, so that all else that a seed on record draws stays what it was.
    var apart = PRNG(seed: ~options.seed)
    let (replays, asks) = (apart.chance(0.25), apart.chance(0.25))
    let grinds = apart.chance(0.2) && kind == .created && !sitsInStaleCall && options.uses == nil
    let forges = apart.chance(0.2)
    if options.tactics == nil {
      tactics += (replays ? [.replays] : []) + (asks ? [.questions] : [])
      tactics += (forges ? [.forgeries] : []) + (grinds ? [.groundKeys] : [])
    }
    self.tactics = tactics
    let hasGuests = kind == .created && tactics.contains(.groundKeys)
    let guests = hasGuests ? Array(2..<count) : []
    self.guests = guests
    for guest in guests { drawn[guest] = invitedAs }
    roles = kind == .created ? drawn : Array(repeating: .presenter, count: count)
    uses = guests.isEmpty ? options.uses ?? drawnUses : UInt32(guests.count + linkedKeys)
    // With the invite the owner would remove the guests.
    self.removes = (options.removes ?? removes) && kind == .created && guests.isEmpty
    let endsWithInitiator = prng.chance(0.5)
    settings = ChannelSettings(
      callEndsWithInitiator: endsWithInitiator && tactics.contains(.staleCalls))
  }
}
