import MusterBase
import MusterChannel
import MusterCore
import MusterCrypto
import MusterWire

/// What the adversary knows of the channel, its keys, and the entries that it signs with them.
///
/// It signs whatever it likes and is bound by nothing but cryptography: entries of others it can
/// only pass on.
struct Adversary: Sendable {
  /// A key of the adversary.
  struct Key: Sendable {
    let identity: Identity
    let bootID: UInt64
    var sequence: UInt64
  }

  /// One step of a flood.
  enum Move: Sendable {
    /// The bytes of an entry, for the members to keep and pass on.
    case entry([UInt8])
    /// A question for entries.
    case question(Control)
    /// A datagram that the network has carried before.
    case replay
  }

  let channel: ChannelID
  /// The invite with which its keys get their roles; nil in an open channel.
  let invite: InviteCredential?
  let tactics: [AdversaryTactic]
  let counters: AdversaryCounters
  /// The members in good standing.
  let members: [NodeID]
  /// A call without an end whose initiator is not in it any more; nil for none.
  let staleCall: CallClaim?

  private(set) var keys: [Key] = []
  /// The number of keys, and of entries, that it has made so far.
  private(set) var keyCount = 0
  private(set) var entryCount = 0
  /// The highest counter in the members' entries.
  private var lamport: UInt64 = 0
  /// The newest claim that members have made.
  private var call: CallClaim?
  /// Entries that it has had, by the first eight bytes of their ids.
  private var had: [UInt64] = []
  /// How many of them it asks for again.
  private static let hadLimit = 64
  /// The first eight bytes of the id of its last message.
  private var newestMessage: UInt64 = 0
  private var entropy: Entropy
  private var prng: PRNG

  init(
    channel: ChannelID, invite: InviteCredential?, scenario: AdversaryScenario, members: [NodeID],
    staleCall: CallClaim?, seed: UInt64
  ) {
    self.channel = channel
    self.invite = invite
    self.members = members
    self.staleCall = staleCall
    tactics = scenario.tactics
    counters = scenario.counters
    prng = PRNG(seed: seed)
    entropy = .seeded(prng.next())
    for _ in 0..<scenario.keys { keys.append(newKey()) }
  }

  private mutating func newKey() -> Key {
    keyCount += 1
    var identity = Identity(generating: &entropy)
    for _ in 1..<(tactics.contains(.groundKeys) ? Self.searched : 1) {
      let other = Identity(generating: &entropy)
      if other.id < identity.id { identity = other }
    }
    return Key(identity: identity, bootID: prng.next(), sequence: prng.next() >> 1)
  }

  /// The number of keys of which the smallest is used, if it searches for keys.
  private static let searched = 8

  /// Learns from an entry that a member has sent; `id`: the first eight bytes of its id.
  mutating func learn(_ entry: Entry, _ id: UInt64) {
    had = (had + [id]).suffix(Self.hadLimit)
    guard members.contains(entry.author) else { return }
    lamport = max(lamport, entry.lamport)
    if case .claim(let claim) = entry.body { call = claim }
  }

  // MARK: Signing

  /// The entries with which a key appears in the channel: the redemption of the invite, and a
  /// presence.
  mutating func introduction(of index: Int) -> [SignedEntry] {
    var bodies: [EntryBody] = []
    if let invite {
      bodies.append(
        .redemption(
          Invites.redemption(
            of: invite.grant, secret: invite.secret, by: keys[index].identity.id, in: channel)))
    }
    bodies.append(presence(of: keys[index]))
    return bodies.map { sign($0, by: index) }
  }

  /// As if it had no entry at all.
  private static let everything = Control.ranges([
    RangeSummary(depth: 0, prefix: 0, content: .ids([]))
  ])

  /// The next steps of the flood, at least `count`; none without a tactic.
  mutating func flood(_ count: Int) -> [Move] {
    var moves: [Move] = []
    guard !tactics.isEmpty else { return moves }
    while moves.count < count { moves += next() }
    return moves
  }

  private mutating func next() -> [Move] {
    let index = prng.below(keys.count)
    let tactic = prng.one(of: tactics)
    switch tactic {
    case .replays: return [.replay]
    case .questions: return [.question(prng.chance(0.5) ? Self.everything : .want(had))]
    case .forgeries: return [.entry(forgery(by: index))]
    default: return entries(of: tactic, by: index).map { .entry($0.bytes) }
    }
  }

  private mutating func entries(of tactic: AdversaryTactic, by index: Int) -> [SignedEntry] {
    switch tactic {
    case .claims:
      let own = CallClaim(
        call: CallID(high: prng.next(), low: prng.next()), term: 1, startedAt: 0, order: 0,
        knowledge: .compared)
      let taken = call.map { CallClaim(taking: $0) } ?? own
      return [sign(.claim(prng.chance(0.5) ? own : taken), by: index)]
    case .ends:
      let id = call?.call ?? CallID(high: prng.next(), low: prng.next())
      let term = (call?.term ?? 1) &+ UInt32(prng.below(3))
      return [sign(.end(CallEnd(call: id, term: term)), by: index)]
    case .joinings:
      let other = CallID(high: prng.next(), low: prng.next())
      let id = prng.chance(0.5) ? other : call?.call ?? other
      return [sign(.joining(CallJoining(call: id, stage: .lasting)), by: index)]
    case .messages:
      let text = Array("\(Marker.text) floods \(entryCount)".utf8)
      let message = Message(sentAt: 0, after: predecessors(), to: nil, content: text)
      let entry = sign(.message(message), by: index)
      newestMessage = entry.id.prefix
      return [entry]
    case .presences:
      let report = NeighbourReport(
        bootID: keys[index].bootID, heard: members.map(\.key.prefix),
        suspected: members.map(\.key.prefix))
      return [presence(of: keys[index]), .neighbourReport(report)].map { sign($0, by: index) }
    case .grants:
      let own = Grant(
        subject: keys[index].identity.id, role: .owner)
      let removal = Grant(
        subject: prng.one(of: members), role: .none)
      return [sign(.grant(own), by: index), sign(.grant(removal), by: index)]
    case .keys:
      keys[index] = newKey()
      return introduction(of: index)
    case .groundKeys: return introduction(of: index)
    case .equivocations:
      let first = sign(presence(of: keys[index]), by: index)
      keys[index].sequence &-= 1
      return [first, sign(.unknown(kind: 200, prng.bytes(8)), by: index)]
    case .unknown: return [sign(.unknown(kind: 201, prng.bytes(64)), by: index)]
    case .staleCalls:
      let id = staleCall?.call ?? CallID(high: prng.next(), low: prng.next())
      let joining = CallJoining(call: id, stage: .lasting)
      return [presence(of: keys[index]), .joining(joining)].map { sign($0, by: index) }
    case .replays, .questions, .forgeries: return []
    }
  }

  /// A presence in the name of a member, or of its own with a signature of another entry.
  private mutating func forgery(by index: Int) -> [UInt8] {
    let own = sign(presence(of: keys[index]), by: index)
    guard prng.chance(0.5) else {
      let other = sign(presence(of: keys[index]), by: index)
      return own.bytes.dropLast(Entry.signatureBytes) + other.bytes.suffix(Entry.signatureBytes)
    }
    let (author, sequence) = (prng.one(of: members), own.entry.sequence)
    let forged = Entry(
      author: author, sequence: sequence, lamport: own.entry.lamport, body: own.entry.body)
    return SignedEntry.sign(forged, by: keys[index].identity, in: channel).bytes
  }

  /// The predecessors of its next message: none, its last message, or one that never was.
  private mutating func predecessors() -> [UInt64] {
    prng.one(of: [[], [newestMessage], [prng.next()]])
  }

  private func presence(of key: Key) -> EntryBody {
    .presence(
      Presence(
        bootID: key.bootID, flags: [.speaking, .audio], name: "\(Marker.text)-x",
        call: (staleCall ?? call).map { Participation(id: $0.call, joined: 0) }, streams: []))
  }

  private mutating func sign(_ body: EntryBody, by index: Int) -> SignedEntry {
    entryCount += 1
    keys[index].sequence &+= 1
    let counter: UInt64 =
      switch counters {
      case .honest: lamport + 1
      case .lowest: UInt64(prng.below(4))
      case .ahead: lamport + (1 << 24) + UInt64(entryCount)
      case .highest: Entry.lamportLimit - UInt64(prng.below(1 << 20))
      }
    let identity = keys[index].identity
    return SignedEntry.sign(
      Entry(
        author: identity.id, sequence: keys[index].sequence,
        lamport: min(counter, Entry.lamportLimit), body: body),
      by: identity, in: channel)
  }
}

extension CallClaim {
  /// The claim by which someone takes over the call of `claim`.
  fileprivate init(taking claim: CallClaim) {
    self.init(
      call: claim.call, term: claim.term &+ 1, startedAt: claim.startedAt, order: claim.order,
      knowledge: claim.knowledge)
  }
}
