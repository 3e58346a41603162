import MusterBase
import MusterCrypto
import MusterWire

/// One channel as one member knows it: its document, who is there, what they may, and the call.
///
/// Everything follows from the document and from who can be reached: the same entries and the same
/// links give the same roster and the same call on every node, in whatever order they came. What
/// goes on between two nodes is in `ChannelState+Links`, what this node itself says in
/// `ChannelState+Own`, and what follows from all that in `ChannelState+Settle`.
public struct ChannelState: Sendable {
  public enum Output: Equatable, Sendable {
    case send(Control, to: NodeID)
    case event(ChannelEvent)
    /// An entry that outlives this process, and those that need not be remembered any more.
    case keep(SignedEntry)
    /// A kept message has been shown, or is not for this node: it is not to be shown again.
    case shown(EntryID)
    case forget([EntryID])
    /// The neighbour has not answered for too long: its link counts as down.
    case fail(NodeID)
  }

  /// What a channel starts from.
  public struct Setup: Sendable {
    public var identity: Identity
    public var channel: ChannelID
    /// Nil for an open channel.
    public var genesis: SignedGenesis?
    public var name: String
    public var bootID: UInt64
    public var entropy: Entropy
    public var seed: UInt64
    /// What was remembered of an earlier process.
    public var entries: [SignedEntry] = []
    /// Those messages among them that it had not shown before it ended.
    public var unshown: [EntryID] = []
    package var flaw: MeshFlaw?

    public init(
      identity: Identity, channel: ChannelID, genesis: SignedGenesis?, name: String,
      bootID: UInt64, entropy: Entropy, seed: UInt64
    ) {
      self.identity = identity
      self.channel = channel
      self.genesis = genesis
      self.name = name
      self.bootID = bootID
      self.entropy = entropy
      self.seed = seed
    }
  }

  /// A neighbour: a node with a link of its own to this one.
  struct Neighbour: Sendable {
    /// The process at the other end: what an earlier one said of itself does not count.
    var bootID: UInt64
  }

  public let channel: ChannelID
  public let settings: ChannelSettings
  private let owner: NodeID?
  public internal(set) var call: ActiveCall?

  let identity: Identity
  var entropy: Entropy
  /// What this node says of itself, and the entry that last said so.
  var own: Presence
  var ownEntry: SignedEntry?
  var presenceDueAt: Instant?
  var presenceSentAt: Instant?
  var reportDueAt: Instant?
  /// What this node might do when it was last looked at.
  var ownRole: Role
  /// The entry that last said whom this node hears.
  var ownReport: EntryID?
  var sequence: UInt64

  var gossip: Gossip
  var detector: FailureDetector
  var rights: Rights
  var succession = Succession()
  var messages = MessageLog()
  /// Messages that an earlier process was told of and had no time to show.
  var unshown: [SignedEntry] = []
  /// Messages whose authors have no right to write yet: their grants may still be on their way.
  var withheld: [SignedEntry] = []

  var neighbours = PeerTable<NodeID, Neighbour>()
  /// Neighbours that said goodbye on the link itself; why they are gone if nothing else tells.
  var leaveMessages: [NodeID] = []
  /// Everyone here but this node.
  var roster = PeerTable<NodeID, Member>()
  /// What has changed since the last time everything was worked out.
  var changes = Changes()
  /// Entries whose arrival everywhere ends this node's time here.
  var lastWords: [EntryID] = []
  /// Milliseconds from boot time to wall time: for expiry and display only.
  var wallOffset: Int64 = 0
  /// When the next role expires, or rights are to be evaluated again for another reason.
  var expiryAt: Instant?
  /// The entry that this node published last.
  var lastPublished: EntryID?
  /// A patched node, for tests of the others: it does what its role forbids.
  package var ignoresOwnRole = false

  struct Changes: Sendable {
    var rights = true
    var reachability = true
    var call = true
    /// This node's own word was overtaken by one of an earlier process of it.
    var ownIsOvertaken = false

    var isEmpty: Bool { !rights && !reachability && !call && !ownIsOvertaken }
  }

  public init(_ setup: Setup) {
    identity = setup.identity
    channel = setup.channel
    settings = setup.genesis?.genesis.settings ?? ChannelSettings()
    owner = setup.genesis?.genesis.owner
    entropy = setup.entropy
    var seeds = PRNG(seed: setup.seed)
    gossip = Gossip(
      channel: setup.channel, own: setup.identity.id, exempt: setup.genesis?.genesis.owner,
      seed: seeds.next())
    detector = FailureDetector(seed: seeds.next())
    rights = Rights(channel: setup.channel, genesis: setup.genesis)
    // A process never repeats a sequence of an earlier one that it may have forgotten.
    sequence = entropy.u64() & ~0xFFFF_FFFF
    own = Presence(
      bootID: setup.bootID, flags: [], name: Member.shownName(setup.name, of: setup.identity.id),
      call: nil, streams: [])
    gossip.flaw = setup.flaw
    rights.flaw = setup.flaw
    gossip.restore(setup.entries)
    let known = setup.entries.filter { $0.entry.body.kind == .message }
    let waiting = setup.unshown.sorted()
    let isUnshown = known.map { entry in
      let index = waiting.firstPlace { $0 >= entry.id }
      return index < waiting.count && waiting[index] == entry.id
    }
    unshown = zip(known, isUnshown).filter(\.1).map(\.0)
    messages.restore(zip(known, isUnshown).filter { !$0.1 }.map(\.0))
    rights.update(from: gossip.document)
    ownRole = rights.role(of: setup.identity.id, at: 0)
  }

  // MARK: What is known

  /// Everyone who can be reached, without this node, in the order of their ids.
  public var members: [Member] { roster.map(\.value) }

  public var ownMember: Member {
    Member(own, of: identity.id, role: rights.role(of: identity.id, at: wallSeconds))
  }

  /// A member that can be reached.
  public func member(_ id: NodeID) -> Member? { roster[id] }

  public var isInCall: Bool { own.call != nil }

  /// Whether this node has said its last word here.
  public var hasLeft: Bool { own.flags.contains(.left) }

  /// Whether every neighbour has this node's newest word.
  public var isSettled: Bool {
    (lastWords + [ownEntry?.id].compactMap { $0 }).allSatisfy { gossip.isSettled($0) }
  }

  /// Neighbours that have not answered for a while.
  public var suspected: [NodeID] { detector.suspected }
  public var digest: DocumentDigest { gossip.document.digest }
  public var epochs: [(change: EpochChange, id: EntryID, bytes: [UInt8])] { rights.epochs }
  public var currentEpoch: UInt32 { rights.currentEpoch }

  /// What it takes to follow the newest `count` key changes: the grants that go with them, and they
  /// themselves, in this order.
  public func keyChanges(newest count: Int) -> (grants: [[UInt8]], changes: [[UInt8]]) {
    let changes = rights.epochs.suffix(count)
    let kept = changes.flatMap(\.change.kept)
    let grants = gossip.document.all(.grant).filter { entry in
      guard case .grant(let grant) = entry.entry.body, entry.entry.author == owner else {
        return false
      }
      return kept.contains(grant.subject.key.prefix)
    }
    return (grants.map(\.bytes), changes.map(\.bytes))
  }

  /// What shows others that this node is a member: its redemption of an invite, and the newest
  /// grants of its role.
  public var credentials: [[UInt8]] {
    let grants = gossip.document.all(.grant).filter { entry in
      guard case .grant(let grant) = entry.entry.body else { return false }
      return grant.subject == identity.id && !grant.isBearer
    }
    let redemption = gossip.document.newest(.redemption, of: identity.id)
    return ([redemption].compactMap { $0 } + grants.suffix(2)).map(\.bytes)
  }

  /// Everyone with a role in a created channel, and until when (0: for good).
  public var roles: [(member: NodeID, role: Role, expiresAt: UInt64)] {
    rights.members(at: wallSeconds)
  }

  /// What a member may do, as the document says by now.
  public func role(of member: NodeID) -> Role { rights.role(of: member, at: wallSeconds) }

  /// Whether a member may do something, as the document says by now.
  public func may(_ capability: Capability, _ member: NodeID) -> Bool {
    rights.may(capability, member, at: wallSeconds)
  }

  /// Why `peer` is not taken for a member; nil when it is one.
  public func refusal(of peer: NodeID) -> Refusal? {
    if gossip.document.quarantined.contains(peer) { return .equivocated }
    return rights.refusal(of: peer, at: wallSeconds)
  }

  /// The messages of the document that this node may read, in the order.
  public var history: [TextMessage] {
    gossip.document.all(.message).filter { may(.sendText, $0.entry.author) }.compactMap(text)
  }

  /// Whether both are to have a link of their own (`Topology`).
  public func wantsLink(to peer: NodeID) -> Bool {
    guard roster.count >= Topology.meshLimit, let member = roster[peer] else { return true }
    let isShared = own.call != nil && own.call?.id == member.call
    var everyone = roster.keys
    everyone.append(identity.id)
    everyone.sort()
    return Topology.wants(identity.id, peer, members: everyone, bothInCall: isShared)
  }

  // MARK: Time

  /// Sets how far wall time is ahead of boot time; the next input, which is due at once, applies
  /// what that means for roles that expire.
  public mutating func setWallClock(offsetMilliseconds: Int64, at now: Instant) {
    wallOffset = offsetMilliseconds
    wallNow = now
    expiryAt = now
  }

  /// The boot time of the last input: what `wallSeconds` counts from.
  var wallNow = Instant.zero

  var wallSeconds: UInt64 { wallMilliseconds / 1000 }

  var wallMilliseconds: UInt64 {
    UInt64(clamping: wallOffset &+ wallNow.nanoseconds / 1_000_000)
  }

  public var deadline: Instant? {
    var next = soonest(gossip.deadline, neighbours.isEmpty ? nil : detector.deadline)
    next = soonest(next, soonest(presenceDueAt, reportDueAt))
    next = soonest(next, soonest(succession.deadline, messages.deadline))
    next = soonest(next, expiryAt)
    return next
  }
}
