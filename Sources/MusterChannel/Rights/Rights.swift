import MusterBase
import MusterWire

/// Who may do what in a channel, as its document says.
///
/// In an open channel everyone is a presenter. In a created one the owner of the genesis grants
/// roles, directly or by invites; members whom it has made owners grant those below. Nothing else
/// counts, so that the same document gives the same roles on every node. Of the direct grants for a
/// member the newest holds, also when it has expired; an invite's role counts beside an older
/// direct one. An invite counts while the channel has the key that it came with: whoever came by
/// one stays when the key changes because the owner grants its role directly before that
/// (`grantsBeforeKeyChange`). A Lamport counter, which everyone sets as it likes, could not tell an
/// invite shown before the change from one shown after it.
public struct Rights: Sendable {
  let channel: ChannelID
  private let owner: NodeID?
  public let settings: ChannelSettings
  /// The owner's key changes without a gap; `Limits.epochs` at most.
  var chain: [(change: EpochChange, entry: SignedEntry)] = []
  /// What owners have said of each key, and those that came by an invite.
  var standings = PeerTable<NodeID, Standing>()
  /// Redemptions of `Limits.authors` at most, so that no signature is checked twice.
  var checked = PeerTable<NodeID, CheckedRedemption>()
  var quarantined: [NodeID] = []
  var versions: [UInt64] = []
  package var flaw: MeshFlaw?

  /// A channel with `genesis`, whose id is `channel`; without one it is open.
  public init(channel: ChannelID, genesis: SignedGenesis?) {
    self.channel = channel
    owner = genesis?.genesis.owner
    settings = genesis?.genesis.settings ?? ChannelSettings()
  }

  public var isOpen: Bool { owner == nil }

  /// The owner's key changes: 1, 2 and so on; of two after the same one the first in the order.
  public var epochs: [(change: EpochChange, id: EntryID, bytes: [UInt8])] {
    chain.map { ($0.change, $0.entry.id, $0.entry.bytes) }
  }

  /// The epoch of the channel's key: 0 for the one that it was created with.
  public var currentEpoch: UInt32 { chain.last?.change.number ?? 0 }

  /// What a member may do at a time, in seconds since 1970.
  public func role(of member: NodeID, at wallSeconds: UInt64) -> Role {
    judgement(of: member, at: wallSeconds).role
  }

  /// Whether a member may do something at a time, in seconds since 1970.
  public func may(
    _ capability: Capability, _ member: NodeID, at wallSeconds: UInt64
  ) -> Bool {
    if flaw == .uncheckedRole { return true }
    return capability.isAllowed(to: role(of: member, at: wallSeconds), in: settings)
  }

  /// Why `member` is not one; nil when it is.
  public func refusal(of member: NodeID, at wallSeconds: UInt64) -> Refusal? {
    judgement(of: member, at: wallSeconds).refusal
  }

  /// Everyone with a role, by id, and when it ends (0: never); in open channels nobody is named.
  public func members(
    at wallSeconds: UInt64
  ) -> [(member: NodeID, role: Role, expiresAt: UInt64)] {
    var known = standings.keys
    if let owner, standings.index(of: owner) == nil { known.append(owner) }
    return known.sorted().compactMap { member in
      let judgement = judgement(of: member, at: wallSeconds)
      return judgement.role == .none ? nil : (member, judgement.role, judgement.expiresAt)
    }
  }

  /// The highest Lamport counter of what owners have said of a member; 0 when they have not.
  public func newestWord(about member: NodeID) -> UInt64 {
    guard let standing = standings[member] else { return 0 }
    let words = standing.direct + (standing.invite.map { [$0] } ?? [])
    return words.map(\.entry.entry.lamport).max() ?? 0
  }

  /// Whether an entry belongs into the document of a created channel: keys cost nothing, and those
  /// that no owner ever spoke of must not push out what members say. Whoever had a role keeps its
  /// place, so that the answer, once yes, does not change with time.
  func admits(_ entry: Entry) -> Bool {
    guard let owner, entry.author != owner else { return true }
    switch entry.body {
    case .epoch: return false
    case .grant: return wasOwner(entry.author)
    case .redemption(let redemption):
      let grant = Invites.verified(redemption, by: entry.author, in: channel)
      return grant.map { $0.entry.author == owner || wasOwner($0.entry.author) } ?? false
    case .presence, .neighbourReport, .claim, .end, .message, .unknown:
      return standings.index(of: entry.author) != nil
    }
  }

  /// Whether the channel's owner has at any time made `member` an owner too.
  private func wasOwner(_ member: NodeID) -> Bool {
    guard let standing = standings[member] else { return false }
    return (standing.direct + [standing.invite].compactMap { $0 })
      .contains { $0.author == owner && $0.grant.role == .owner }
  }

  /// When the next role ends: rights are to be looked at anew then.
  public func nextExpiry(after wallSeconds: UInt64) -> UInt64? {
    var next: UInt64?
    for (_, standing) in standings {
      let invite = standing.invite.map { [$0] } ?? []
      for time in (standing.direct + invite).map(\.grant.expiresAt) where time > wallSeconds {
        next = min(next ?? time, time)
      }
    }
    return next
  }

  /// What the owner has to publish before it changes the key: direct grants of their roles for
  /// those who came by invites, who would be strangers otherwise; not for those removed.
  public func grantsBeforeKeyChange(
    removing removed: [NodeID], at wallSeconds: UInt64
  ) -> [Grant] {
    standings.keys.compactMap { member in
      let judgement = judgement(of: member, at: wallSeconds)
      guard judgement.isByInvite, judgement.role > .none, !removed.contains(member) else {
        return nil
      }
      return Grant(
        subject: member, role: judgement.role, expiresAt: judgement.expiresAt, epoch: 0,
        isBearer: false)
    }
  }

  /// Works the rights out anew when something that they follow from has changed.
  public mutating func update(from document: Document) {
    guard let owner else {
      quarantined = document.quarantined
      return
    }
    let now = ([.grant, .redemption, .epoch] as [EntryBody.Kind]).map {
      document.version(of: $0)
    }
    guard now != versions || document.quarantined != quarantined else { return }
    versions = now
    quarantined = document.quarantined
    let grants = document.all(.grant)
    chain = Self.chain(document.all(.epoch), of: owner, grants: grants)
    checkRedemptions(document.all(.redemption))
    collectStandings(grants, owner: owner)
  }

  // MARK: Judging

  private func judgement(of member: NodeID, at wallSeconds: UInt64) -> Judgement {
    guard let owner else {
      return quarantined.contains(member) ? .refused(.equivocated) : Judgement(role: .presenter)
    }
    if member == owner { return Judgement(role: .owner) }
    if quarantined.contains(member) { return .refused(.equivocated) }
    guard let standing = standings[member] else { return .refused(.noGrant) }
    let byOwner = standing.judgement(epoch: currentEpoch, at: wallSeconds) { $0 == owner }
    // What the channel's owner has made an owner, no other owner takes away.
    if byOwner.role == .owner { return byOwner }
    return standing.judgement(epoch: currentEpoch, at: wallSeconds) {
      $0 == owner || isOwner($0, at: wallSeconds)
    }
  }

  /// Whether the channel's owner has made `member` an owner too.
  private func isOwner(_ member: NodeID, at wallSeconds: UInt64) -> Bool {
    guard !quarantined.contains(member), let standing = standings[member] else { return false }
    return standing.judgement(epoch: currentEpoch, at: wallSeconds) { $0 == owner }.role == .owner
  }
}
