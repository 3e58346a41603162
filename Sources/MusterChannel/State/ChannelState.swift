import MusterBase
import MusterCrypto
import MusterWire

/// One channel as one member knows it: its document, roster, rights and call.
///
/// Everything is derived from the document and from reachability: the same entries and links give
/// the same roster and call on every node, in whatever order they arrived. Messages between
/// neighbours are in `ChannelState+Links`, the entries of this node in `ChannelState+Own`, those
/// that wait for the disk in `Commit`, and the derivation in `ChannelState+Recompute`.
public struct ChannelState: Sendable {
  /// Messages to send, events to report and entries to write, in order.
  public enum Output: Equatable, Sendable {
    /// Send a control message to a neighbour, over its link in this channel.
    case send(Control, to: NodeID)
    /// Report an event to the host.
    case event(ChannelEvent)
    /// Entries of this node that must be durable before anyone hears of them: once they are
    /// written, or cannot be, the host calls `finish`, which brings what follows. `Commit.swift`
    /// says which entries these are, and why.
    case commit([SignedEntry], then: CommitID)
    /// An entry to write that others may hear of before.
    case keep(SignedEntry)
    /// A written message has been shown, or is not for this node: later processes do not show it.
    case shown(EntryID)
    /// Entries that later processes do not need.
    case forget([EntryID])
    /// The neighbour has not answered for too long: its link counts as down.
    case fail(NodeID)
  }

  /// The initial state of a channel.
  public struct Setup: Sendable {
    /// The key pair that signs the entries of this node.
    public var identity: Identity
    /// The id that every entry is signed for.
    public var channel: ChannelID
    /// Nil for an open channel.
    public var genesis: SignedGenesis?
    /// The display name of this node; sanitised before it is published.
    public var name: String
    /// Random id of this process, named in its presences and neighbour reports.
    public var bootID: UInt64
    /// A generator for secrets and sequence numbers, which must not repeat.
    public var entropy: Entropy
    /// Seeds the jitter of gossip and probes, where only spread matters.
    public var seed: UInt64
    /// Entries that an earlier process has written.
    public var entries: [SignedEntry] = []
    /// Those messages among them that it had not shown before it ended.
    public var unshown: [EntryID] = []
    package var policy = ChannelPolicy.standard

    /// A channel without entries of an earlier process.
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
    /// The process at the other end; presences of other processes do not count for it.
    var bootID: UInt64
  }

  /// The id that every entry is signed for.
  public let channel: ChannelID
  /// The policies of the genesis; the defaults in an open channel.
  public let settings: ChannelSettings
  private let owner: NodeID?
  /// The active call that counts in this channel; nil while there is none.
  public internal(set) var call: ActiveCall?

  let identity: Identity
  var entropy: Entropy
  /// This node's state, and the entry that last published it.
  var own: Presence
  var ownEntry: SignedEntry?
  var presenceDueAt: Instant?
  var presenceSentAt: Instant?
  var reportDueAt: Instant?
  /// This node's role at the last recomputation.
  var ownRole: Role
  /// The neighbour report that this node published last.
  var ownReport: EntryID?
  var sequence: UInt64
  /// The Lamport counter of the entry that this process signed last.
  var signedLamport: UInt64 = 0

  var gossip: Gossip
  var detector: FailureDetector
  var rights: Rights
  var succession = Succession()
  var messages = MessageLog()
  /// Messages that an earlier process received and had no time to show.
  var unshown: [SignedEntry] = []
  /// Messages whose authors have no right to write yet: their grants may still be on their way.
  var withheld: [SignedEntry] = []

  var neighbours = PeerTable<NodeID, Neighbour>()
  /// Why the links of neighbours ended that closed or replaced them: the reason of their leaving
  /// the channel if the document has none. `Limits.peersPerChannel` at most.
  var linkEnds = PeerTable<NodeID, LeaveReason>()
  /// Everyone here but this node.
  var roster = PeerTable<NodeID, Member>()
  /// Own entries on their way to the disk, in the order of their signing; `PendingCommit.limit` at
  /// most.
  var pending: [PendingCommit] = []
  /// Inputs of the derivation that changed since the last recomputation.
  var changes = Changes()
  /// Counts the recomputations.
  var recomputations: UInt64 = 0
  /// Own entries that every neighbour must have before this node may close its links.
  var lastWords: [EntryID] = []
  /// Milliseconds from boot time to wall time: for expiry and display only.
  var wallOffset: Int64 = 0
  /// When the next role expires, or rights are to be evaluated again for another reason.
  var expiryAt: Instant?
  private let policy: ChannelPolicy

  struct Changes: Sendable {
    var rights = true
    var reachability = true
    var call = true
    /// A newer own presence of an earlier process has arrived: this process publishes its own
    /// again.
    var ownIsOvertaken = false

    var isEmpty: Bool { !rights && !reachability && !call && !ownIsOvertaken }
  }

  /// Restores the document of an earlier process and draws a new range of sequence numbers.
  public init(_ setup: Setup) {
    identity = setup.identity
    channel = setup.channel
    settings = setup.genesis?.genesis.settings ?? ChannelSettings()
    owner = setup.genesis?.genesis.owner
    entropy = setup.entropy
    var seeds = PRNG(seed: setup.seed)
    gossip = Gossip(
      channel: setup.channel, own: setup.identity.id, exempt: setup.genesis?.genesis.owner,
      seed: seeds.next(), policy: setup.policy)
    policy = setup.policy
    detector = FailureDetector(seed: seeds.next())
    rights = Rights(channel: setup.channel, genesis: setup.genesis, policy: setup.policy)
    // 32 random bits: a process must not repeat sequence numbers of an earlier one, whose entries
    // it may have lost.
    sequence = entropy.u64() & ~0xFFFF_FFFF
    own = Presence(
      bootID: setup.bootID, flags: [], name: Member.shownName(setup.name, of: setup.identity.id),
      call: nil, streams: [])
    gossip.restore(setup.entries)
    let known = setup.entries.filter { $0.entry.body.kind == .message }
    let waiting = setup.unshown.sorted()
    let isUnshown = known.map { entry in
      let index = waiting.partitionIndex { $0 >= entry.id }
      return index < waiting.count && waiting[index] == entry.id
    }
    unshown = zip(known, isUnshown).filter(\.1).map(\.0)
    messages.restore(zip(known, isUnshown).filter { !$0.1 }.map(\.0))
    rights.update(from: gossip.document)
    ownRole = rights.role(of: setup.identity.id, at: 0)
  }

  // MARK: Queries

  /// Everyone who can be reached, without this node, in the order of their ids.
  public var members: [Member] { roster.map(\.value) }

  /// This node as its own presence describes it, with its role at the time of the last input.
  public var ownMember: Member {
    Member(
      ownPresence, of: identity.id, role: rights.role(of: identity.id, at: wallSeconds),
      settings: settings)
  }

  /// A member that can be reached.
  public func member(_ id: NodeID) -> Member? { roster[id] }

  /// Whether this node participates in a call.
  public var isInCall: Bool { own.call != nil }

  /// Whether this node has left the channel.
  public var hasLeft: Bool { own.flags.contains(.left) }

  /// Whether every neighbour has acknowledged this node's newest entries.
  public var isSettled: Bool {
    pending.isEmpty
      && (lastWords + [ownEntry?.id].compactMap { $0 }).allSatisfy { gossip.isSettled($0) }
  }

  /// The nodes at the other ends of this node's links, in the order of their ids.
  package var neighbourIDs: [NodeID] { neighbours.keys }

  /// Neighbours that have not answered for a while.
  public var suspected: [NodeID] { detector.suspected }
  /// Number and sum of the ids in the document, for comparison with neighbours.
  public var digest: DocumentDigest { gossip.document.digest }
  /// The owner's key changes in order, from epoch 1, with entry ids and signed bytes.
  public var epochs: [(change: EpochChange, id: EntryID, bytes: [UInt8])] { rights.epochs }
  /// The epoch of the key in force; 0 before the first change.
  public var currentEpoch: UInt32 { rights.currentEpoch }

  /// The entries needed to follow the newest `count` key changes: their grants, then the changes
  /// themselves.
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

  /// The credentials that show others that this node is a member: its redemption of an invite, and
  /// the newest grants of its role.
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

  /// The role of a member at the time of the last input.
  public func role(of member: NodeID) -> Role { rights.role(of: member, at: wallSeconds) }

  /// Whether the role of a member permits something at the time of the last input.
  public func may(_ capability: Capability, _ member: NodeID) -> Bool {
    rights.may(capability, member, at: wallSeconds)
  }

  /// Whether this node does something: whether its role permits it, unless a test says otherwise.
  public func mayItself(_ capability: Capability) -> Bool {
    policy.permits(may(capability, identity.id), true)
  }

  /// While a new neighbour's part of the document is on its way, an unknown call is not reported
  /// yet, and none is to be started: members who have long been in it are then its participants
  /// from the first event on. Nil at other times, and once this node is in a call itself.
  public internal(set) var catchesUpUntil: Instant?

  /// How long that is: some round trips of a LAN. Longer ones are not waited for, since it delays
  /// the joining of a call.
  static let catchUpTime = Duration.milliseconds(50)

  var isCatchingUp: Bool { catchesUpUntil.map { wallNow < $0 } ?? false }

  /// The reason for which `peer` is not a member; nil when it is one.
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

  /// When `tick` is next due, the soonest deadline of all parts; nil while nothing waits.
  public var deadline: Instant? {
    var next = soonest(gossip.deadline, neighbours.isEmpty ? nil : detector.deadline)
    next = soonest(next, soonest(presenceDueAt, reportDueAt))
    next = soonest(next, soonest(succession.deadline, messages.deadline))
    return soonest(next, soonest(expiryAt, catchesUpUntil))
  }
}
