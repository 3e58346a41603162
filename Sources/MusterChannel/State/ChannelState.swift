import MusterBase
import MusterCrypto
import MusterWire

/// The state of one channel on one member: document, roster, rights and call.
///
/// Roster, rights and call are derived from the document and from reachability: the same entries
/// and links give the same result on every node, in whatever order they arrived. Messages between
/// neighbours are handled in `ChannelState+Links`, this node's entries in `ChannelState+Own`,
/// entries that wait for the disk in `Commit`, and the derivation in `ChannelState+Recompute`.
public struct ChannelState: Sendable {
  /// Messages to send, events to report and entries to write, in order.
  public enum Output: Equatable, Sendable {
    /// Send a control message to a neighbour, over its link in this channel.
    case send(Control, to: NodeID)
    /// An event for the host to report.
    case event(ChannelEvent)
    /// Entries of this node that must be durable before they are sent. Once they are written, or
    /// the write has failed, the host calls `finish`, which returns the outputs that follow.
    /// `PendingCommit` lists these entries and the reasons.
    case commit([SignedEntry], then: CommitID)
    /// An entry to write that may be sent before it is durable.
    case keep(SignedEntry)
    /// A stored message that has been shown, or is for another member; later processes do not show
    /// it.
    case delivered(EntryID)
    /// Stored entries to delete, because later processes do not need them.
    case forget([EntryID])
    /// The neighbour has not answered within the suspicion timeout; its link counts as down.
    case fail(NodeID)
  }

  /// The parameters of a channel state, and the entries of an earlier process.
  public struct Setup: Sendable {
    /// The key pair that signs the entries of this node.
    public var identity: Identity
    /// The channel's id, which the signature of every entry covers.
    public var channel: ChannelID
    /// The genesis of a created channel; nil for an open one.
    public var genesis: SignedGenesis?
    /// The display name of this node; sanitised before it is published.
    public var name: String
    /// The boot id of this run, named in its presences and neighbour reports.
    public var bootID: UInt64
    /// A generator for nonces and sequence numbers, which must not repeat.
    public var entropy: Entropy
    /// The seed for the jitter of gossip and probes, which need not be unpredictable.
    public var seed: UInt64
    /// Entries that an earlier process has stored on disk.
    public var entries: [SignedEntry] = []
    /// The messages among `entries` that the earlier process had not shown.
    public var undelivered: [EntryID] = []
    package var policy = ChannelPolicy.standard

    /// Describes a channel without entries of an earlier process.
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

  /// A node with a link to this node.
  struct Neighbour: Sendable {
    /// The boot id of the run at the other end; presences of other runs do not apply.
    var bootID: UInt64
    /// The number of its link, counted from the first of this node.
    var contact: UInt64
  }

  /// The channel's id, which the signature of every entry covers.
  public let channel: ChannelID
  /// The policies in the channel's genesis; the default policies in an open channel.
  public let settings: ChannelSettings
  let owner: NodeID?
  /// The active call of this channel; nil without one.
  public internal(set) var call: ActiveCall?

  let identity: Identity
  var entropy: Entropy
  /// This node's presence; `ownEntry` is the entry that last published it.
  var ownPresence: Presence
  var ownEntry: SignedEntry?
  var presenceDueAt: Instant?
  var presenceSentAt: Instant?
  var reportDueAt: Instant?
  /// The time at which this node confirms the uses of its invites; nil if all are confirmed.
  var confirmationDueAt: Instant?
  /// The time at which the host of the channel's owner changes the key, because roles have expired
  /// whose holders know it; nil if there are none. It is not among the deadlines of `tick`.
  public internal(set) var keyChangeDueAt: Instant?
  /// The time of the last such change of this process.
  var keyChangeTriedAt: Instant?
  /// This node's role at the last recomputation.
  var ownRole: Role
  /// The end of this node's role that was last announced, and how many seconds before it.
  var announcedEnd: (at: UInt64, lead: UInt64)?
  /// The neighbour report that this node published last.
  var ownReport: SignedEntry?
  var sequence: UInt64
  /// The Lamport counter of the entry that this process signed last.
  var signedLamport: UInt64 = 0

  var gossip: Gossip
  var detector: FailureDetector
  /// The roles of members and the use of invites, as the document says.
  public internal(set) var rights: Rights
  var succession = Succession()
  var joiningSchedule = JoiningSchedule()
  var messages = MessageLog()
  /// The order of the messages that have been shown.
  var order = MessageOrder()
  /// Messages that an earlier process received but did not show.
  var undelivered: [SignedEntry] = []
  /// Messages whose authors have no right to write yet; the grants may still arrive.
  var awaitingGrant: [SignedEntry] = []

  var neighbours = PeerTable<NodeID, Neighbour>()
  /// The number of links to neighbours so far.
  var contacts: UInt64 = 0
  /// Why neighbours closed or replaced their links; used as the leave reason if the document does
  /// not state one. At most `Limits.peersPerChannel`.
  var linkEnds = PeerTable<NodeID, LeaveReason>()
  /// The runs in which members, and this node's own identity, have shown themselves.
  var runs = RunLedger()
  /// The reachable members, without this node.
  var roster = PeerTable<NodeID, Member>()
  /// Commits of this node that wait for the disk, in the order of their signing; at most
  /// `PendingCommit.limit`.
  var pending: [PendingCommit] = []
  /// Inputs of the derivation that changed since the last recomputation.
  var changes = Changes()
  /// The number of recomputations so far: the work that inputs have caused.
  package internal(set) var recomputations: UInt64 = 0
  /// Own entries that every neighbour must have before this node may close its links.
  var finalEntries: [EntryID] = []
  /// The offset of wall time from boot time in milliseconds, used only for expiry and display.
  var wallOffset: Int64 = 0
  /// The time on the boot clock at which rights are next evaluated: at the next expiry of a role,
  /// at most a day ahead, or at once after the wall clock was set. Nil if no role expires.
  var expiryAt: Instant?
  let policy: ChannelPolicy

  struct Changes: Sendable {
    var rights = true
    var reachability = true
    var call = true
    /// Whether a newer presence of an earlier process of this node has arrived, so this
    /// process must publish its own again.
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
    ownPresence = Presence(
      bootID: setup.bootID, flags: [], name: Member.shownName(setup.name, of: setup.identity.id),
      call: nil, streams: [])
    ownRole = .none
    restore(setup.entries)
    let known = setup.entries.filter { $0.entry.body.kind == .message }
    let waiting = setup.undelivered.sorted()
    let isUndelivered = known.map { entry in
      let index = waiting.partitionIndex { $0 >= entry.id }
      return index < waiting.count && waiting[index] == entry.id
    }
    undelivered = zip(known, isUndelivered).filter(\.1).map(\.0)
    messages.restore(zip(known, isUndelivered).filter { !$0.1 }.map(\.0))
    order.restore(known)
    ownRole = rights.role(of: setup.identity.id, at: 0)
  }

  /// Restores entries in rounds, because grants admit the entries of further authors: first those
  /// of the channel's owner, then those of members and further owners.
  private mutating func restore(_ entries: [SignedEntry]) {
    var remaining = entries
    while true {
      rights.update(from: gossip.document)
      let isAdmitted = remaining.map { rights.admits($0.entry) }
      guard isAdmitted.contains(true) else { break }
      gossip.restore(zip(remaining, isAdmitted).filter(\.1).map(\.0))
      remaining = zip(remaining, isAdmitted).filter { !$0.1 }.map(\.0)
    }
    _ = settleDocument()
    gossip.restoreWaiting(remaining)
  }

  /// Removes the entries whose authors have no right to them from the document, and returns them.
  /// `changed`: the only keys whose rights have changed since the last time; nil if any may have.
  mutating func settleDocument(changed: [NodeID]? = nil) -> [SignedEntry] {
    let (rights, own) = (rights, identity.id)
    return gossip.settle(rights.admissions, changed: changed) { rights.holds($0.entry, in: own) }
  }

  // MARK: Queries

  /// The reachable members without this node, sorted by id.
  public var members: [Member] { roster.map(\.value) }

  /// This node as its own presence describes it, with its role at the time of the last input.
  public var ownMember: Member {
    Member(
      presenceToPublish, of: identity.id, role: rights.role(of: identity.id, at: wallSeconds),
      settings: settings)
  }

  /// The reachable member with this id; nil if there is none.
  public func member(_ id: NodeID) -> Member? { roster[id] }

  /// Whether this node participates in a call.
  public var isInCall: Bool { ownPresence.call != nil }

  /// Whether this node has left the channel.
  public var hasLeft: Bool { ownPresence.flags.contains(.left) }

  /// Whether this node's newest entries are written and no longer wait for acknowledgements by
  /// neighbours.
  public var isFlushed: Bool {
    pending.isEmpty
      && (finalEntries + [ownEntry?.id].compactMap { $0 }).allSatisfy { gossip.isFlushed($0) }
  }

  /// The nodes at the other ends of this node's links, sorted by id.
  package var neighbourIDs: [NodeID] { neighbours.keys }
  /// The entries of known kinds in the document, grouped by kind; quarantined authors have none.
  package var entries: [SignedEntry] {
    EntryBody.Kind.allCases.flatMap { gossip.document.all($0) }
  }

  /// Neighbours under suspicion, sorted by id.
  public var suspected: [NodeID] { detector.suspected }
  /// The number and the sum of the ids in the document, for anti-entropy with neighbours.
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

  /// The members with a role in a created channel, and the expiry of each role in seconds since
  /// 1970 (0: never).
  public var roles: [(member: NodeID, role: Role, expiresAt: UInt64)] {
    rights.members(at: wallSeconds)
  }

  /// The role of a member at the time of the last input.
  public func role(of member: NodeID) -> Role { rights.role(of: member, at: wallSeconds) }
  /// Whether a role has expired that an owner gave to the member, or confirmed.
  public func hasRoleEnded(of member: NodeID) -> Bool {
    rights.hasRoleEnded(of: member, at: wallSeconds)
  }

  /// Whether the role of a member permits an action at the time of the last input.
  public func may(_ capability: Capability, _ member: NodeID) -> Bool {
    rights.may(capability, member, at: wallSeconds)
  }

  /// Whether this node carries out an action: its role must permit the action, unless a test
  /// overrides `ChannelPolicy`.
  public func isSelfAllowed(_ capability: Capability) -> Bool {
    policy.permits(may(capability, identity.id), true)
  }

  /// The first time at which this node's document was equal to that of a neighbour; nil before. A
  /// node that starts a call earlier may not know of one that others are in.
  public var comparedAt: Instant? { gossip.comparedAt }

  /// Whether every neighbour has said who it is; it says first which call it is in.
  public var hasHeardAllNeighbours: Bool { neighbours.keys.allSatisfy { isInSameRun($0) } }

  /// The end of the wait for a new neighbour's part of the document; nil at other times. Until
  /// then, a new call is not reported and none should be started, so that the first event of a call
  /// names all its current participants.
  public internal(set) var initialSyncDeadline: Instant?

  /// The wait for a new neighbour's part of the document: a few round trips of a LAN. A longer wait
  /// would delay joining a call.
  static let initialSyncTime = Duration.milliseconds(50)

  var isInitialSync: Bool { initialSyncDeadline.map { lastInputAt < $0 } ?? false }

  /// The reason why `peer` is refused; nil if it has a role.
  public func refusal(of peer: NodeID) -> Refusal? {
    if gossip.document.quarantined.contains(peer) { return .equivocated }
    return rights.refusal(of: peer, at: wallSeconds)
  }

  /// The messages in the document that this node may read, in the order in which they are listed.
  public var history: [TextMessage] {
    MessageOrder.listed(gossip.document.all(.message)).compactMap { entry, counter in
      may(.sendText, entry.entry.author) ? text(of: entry, listedAt: counter) : nil
    }
  }

  /// Whether this node and `peer` should be linked (`Topology`).
  public func wantsLink(to peer: NodeID) -> Bool {
    guard roster.count >= Topology.meshLimit, let member = roster[peer] else { return true }
    let isShared = ownPresence.call != nil && ownPresence.call?.id == member.call
    var everyone = roster.keys
    everyone.append(identity.id)
    everyone.sort()
    return Topology.wants(identity.id, peer, members: everyone, bothInCall: isShared)
  }

  // MARK: Time

  /// Sets the offset of wall time from boot time. The next input, which is due at once, applies the
  /// effect on roles that expire.
  public mutating func setWallClock(offsetMilliseconds: Int64, at now: Instant) {
    wallOffset = offsetMilliseconds
    lastInputAt = now
    expiryAt = now
  }

  /// The boot time of the last input, from which `wallSeconds` is computed.
  var lastInputAt = Instant.zero

  var wallSeconds: UInt64 { wallMilliseconds / 1000 }

  var wallMilliseconds: UInt64 {
    UInt64(clamping: wallOffset &+ lastInputAt.nanoseconds / 1_000_000)
  }

  /// The time at which `tick` is next due, the earliest deadline of all parts; nil if no part has a
  /// deadline.
  public var deadline: Instant? {
    var next = soonest(gossip.deadline, neighbours.isEmpty ? nil : detector.deadline)
    next = soonest(next, soonest(presenceDueAt, reportDueAt))
    next = soonest(next, soonest(succession.deadline, messages.deadline))
    next = soonest(next, soonest(joiningSchedule.deadline, confirmationDueAt))
    return soonest(next, soonest(expiryAt, initialSyncDeadline))
  }
}
