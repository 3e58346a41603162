import MusterBase
import MusterCrypto
import MusterWire

/// An owner's invite, with the members that came by it.
public struct InviteStatus: Equatable, Sendable {
  /// The invite's one-time key.
  public var id: NodeID
  /// The owner that made the invite.
  public var owner: NodeID
  /// The role of those who come by the invite.
  public var role: Role
  /// The number of keys that may come by the invite; 0 for any number.
  public var uses: UInt32
  /// The expiry in seconds since 1970; 0 for never.
  public var expiresAt: UInt64
  /// Whether more keys may come by the invite at the time asked for.
  public var isUsable: Bool
  /// The keys whose redemption an owner has confirmed, sorted by id.
  public var confirmed: [NodeID]
  /// The keys that have the invite's role until an owner confirms them.
  public var provisional: [NodeID]

  /// The keys that came by the invite, confirmed or not.
  public var members: [NodeID] { confirmed + provisional }
}

/// The use of one invite, which its one-time key identifies.
struct InviteUse: Sendable {
  /// Whether the number of uses counts (`ChannelPolicy.limitsUses`).
  var isLimited = true
  /// The newest bearer grant for the one-time key in the document; nil if only redemptions are
  /// known.
  var published: SignedGrant?
  /// The keys whose redemption an owner has confirmed, whatever their roles are now; sorted by id.
  private(set) var confirmed: [NodeID] = []
  /// The keys that have redeemed the invite and are not confirmed, in the order in which they get
  /// what is left of it.
  private(set) var pending: [NodeID] = []
  /// The numbers of uses in the grants that the `pending` keys have redeemed, now or earlier; one,
  /// unless an owner has signed several grants for the same one-time key. Sorted.
  private var limits: [UInt32] = []
  /// The removal of the invite; nil if it is in force.
  var removal: SignedEntry?

  init(isLimited: Bool, published: SignedGrant? = nil) {
    (self.isLimited, self.published) = (isLimited, published)
  }

  /// Whether both say the same about every key.
  func agrees(with other: InviteUse) -> Bool {
    published == other.published && confirmed == other.confirmed && pending == other.pending
      && removal == other.removal
  }

  /// Whether nothing is known of the invite.
  var isEmpty: Bool { published == nil && confirmed.isEmpty && pending.isEmpty }

  /// Whether an owner has revoked the invite.
  var isRevoked: Bool { removal != nil || published?.grant.role == Role.none }

  /// Whether a key that is not known to have redeemed the invite would get its role by the grant in
  /// `signed`. A key that shows its redemption itself (`isDirect`) comes after those before it; one
  /// that others have let in may precede them.
  func isLeft(for member: NodeID, with signed: SignedGrant, isDirect: Bool) -> Bool {
    if confirmed.containsInOrder(member) { return true }
    guard let left = left(of: signed), left <= pending.count else { return true }
    guard !isDirect, published != nil else { return !isDirect }
    return left > 0 && Self.precedes(rank(of: member), rank(of: pending[left - 1]))
  }

  /// Adds a key that has redeemed the invite by `grant`, before `sortPending`.
  mutating func append(_ key: NodeID, by grant: Grant) {
    pending.append(key)
    note(grant)
  }

  /// Adds a key that has redeemed the invite by `grant`.
  mutating func insert(_ key: NodeID, by grant: Grant) {
    note(grant)
    pending.insert(key, at: position(of: key))
  }

  /// Takes a key out that no longer redeems the invite, or whose use an owner has confirmed.
  mutating func remove(_ key: NodeID) {
    let position = position(of: key)
    if position < pending.count, pending[position] == key { pending.remove(at: position) }
  }

  /// Notes that an owner has confirmed a key's use.
  mutating func confirm(_ key: NodeID) {
    confirmed.insert(key, at: confirmed.partitionIndex { $0 >= key })
  }

  /// Notes that a key's use is no longer confirmed.
  mutating func unconfirm(_ key: NodeID) {
    if confirmed.containsInOrder(key) {
      confirmed.remove(at: confirmed.partitionIndex { $0 >= key })
    }
  }

  /// The last of the `pending` keys that get a use, and the first that does not, by each of the
  /// `limits`: one key more or less concerns no others.
  var borderline: [NodeID] {
    limits.flatMap { limit -> [NodeID] in
      let left = Int(limit) - confirmed.count
      return [left - 1, left].filter(pending.indices.contains).map { pending[$0] }
    }
  }

  private mutating func note(_ grant: Grant) {
    guard isLimited, let uses = grant.terms?.uses, uses > 0 else { return }
    let position = limits.partitionIndex { $0 >= uses }
    if position == limits.count || limits[position] != uses { limits.insert(uses, at: position) }
  }

  /// The index of a key in `pending`, or the one at which it belongs.
  private func position(of key: NodeID) -> Int {
    let rank = rank(of: key)
    return pending.partitionIndex { !Self.precedes(self.rank(of: $0), rank) }
  }

  /// Sorts the unconfirmed keys by a hash.
  ///
  /// A redeemer could search for a key with a small hash, but the hash covers the id of the grant
  /// in the document. The invite carries another grant with a signature of its own, so nobody knows
  /// that id before it is a member.
  mutating func sortPending() {
    guard pending.count > 1 else { return }
    let ranked = pending.map { (key: $0, rank: rank(of: $0)) }
    pending = ranked.sorted { Self.precedes($0.rank, $1.rank) }.map(\.key)
  }

  /// The number of uses that are left for unconfirmed keys; nil for any number.
  private func left(of signed: SignedGrant) -> Int? {
    guard isLimited, let uses = signed.grant.terms?.uses, uses > 0 else { return nil }
    return Int(uses) - confirmed.count
  }

  private func rank(of member: NodeID) -> [UInt8] {
    Blake2b.hash((published?.entry.id ?? .zero).bytes + member.key.bytes)
  }

  private static func precedes(_ a: [UInt8], _ b: [UInt8]) -> Bool {
    a.lexicographicallyPrecedes(b)
  }

  /// Why the invite gives nothing to a key that has redeemed it by the grant in `signed`; nil if it
  /// gives its role.
  func refusal(of member: NodeID, with signed: SignedGrant) -> Refusal? {
    if !isRevoked, left(of: signed) == nil || confirmed.containsInOrder(member) { return nil }
    return refusal(at: position(of: member), with: signed)
  }

  /// Why the invite gives nothing to the `pending` key at `position`, which has redeemed it by the
  /// grant in `signed`; nil if it gives its role.
  func refusal(at position: Int, with signed: SignedGrant) -> Refusal? {
    if isRevoked { return .removed }
    return left(of: signed).map { position < $0 } ?? true ? nil : .inviteUsedUp
  }
}
