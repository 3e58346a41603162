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

/// How a node hears of a redemption.
enum Showing: Sendable {
  /// From a member, who may have let the key in on another side of a partition.
  case byOthers
  /// From the key itself, which comes after all those before it.
  case byItself
  /// From the key itself, at the node of the owner that made the invite. Where more have come than
  /// the invite permits, the owner confirms those that it meets, and has to meet them all.
  case byItselfToInviter

  init(by author: NodeID, of signed: SignedGrant, from source: NodeID?, at node: NodeID?) {
    guard author == source else {
      self = .byOthers
      return
    }
    self = signed.author == node ? .byItselfToInviter : .byItself
  }
}

/// The use of one invite, which its one-time key identifies.
struct InviteUse: Sendable {
  /// Whether and how the number of uses counts.
  let policy: ChannelPolicy
  /// The newest bearer grant for the one-time key in the document; nil if only redemptions are
  /// known.
  var published: SignedGrant?
  /// The keys whose redemption an owner has confirmed, whatever their roles are now; sorted by id.
  private(set) var confirmed: [NodeID] = []
  /// The keys that have redeemed the invite and are not confirmed, sorted by id. All of them have
  /// its role for as long as it is not used up by those that are, even if they are more than it
  /// permits: any order among them would be one that a redeemer can search keys for.
  private(set) var pending: [NodeID] = []
  /// The numbers of uses in the grants that the `pending` keys have redeemed, now or earlier; one,
  /// unless an owner has signed several grants for the same one-time key. Sorted.
  private var limits: [UInt32] = []
  /// The removal of the invite; nil if it is in force.
  var removal: SignedEntry?

  init(policy: ChannelPolicy, published: SignedGrant? = nil) {
    (self.policy, self.published) = (policy, published)
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
  /// `signed`, in view of what the other keys have used.
  func isLeft(for member: NodeID, with signed: SignedGrant, shown: Showing) -> Bool {
    guard let left = left(of: signed), !confirmed.containsInOrder(member) else { return true }
    if pending.containsInOrder(member) { return left > 0 }
    switch shown {
    case .byOthers: return left > 0
    case .byItself: return left > pending.count
    case .byItselfToInviter: return left > 0 && left != pending.count
    }
  }

  /// Adds a key that has redeemed the invite by `grant`.
  mutating func insert(_ key: NodeID, by grant: Grant) {
    note(grant)
    pending.insert(key, at: pending.partitionIndex { $0 >= key })
  }

  /// Takes a key out that no longer redeems the invite, or whose use an owner has confirmed.
  mutating func remove(_ key: NodeID) {
    let position = pending.partitionIndex { $0 >= key }
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

  /// The keys that get nothing, or may get something again, as `count` keys were confirmed before.
  func concerned(since count: Int) -> [NodeID] {
    guard count != confirmed.count else { return [] }
    let range = min(count, confirmed.count) + 1...max(count, confirmed.count)
    return limits.contains { range.contains(Int($0)) } ? pending : []
  }

  private mutating func note(_ grant: Grant) {
    guard policy.limitsUses, let uses = grant.terms?.uses, uses > 0 else { return }
    let position = limits.partitionIndex { $0 >= uses }
    if position == limits.count || limits[position] != uses { limits.insert(uses, at: position) }
  }

  /// The number of uses that are left for unconfirmed keys; nil for any number.
  private func left(of signed: SignedGrant) -> Int? {
    guard policy.limitsUses, let uses = signed.grant.terms?.uses, uses > 0 else { return nil }
    return Int(uses) - confirmed.count
  }

  /// Whether the owner that made the invite confirms the use by a `pending` key. If they are more
  /// than the invite permits, those are confirmed that the owner's node has met first; `rank` is
  /// the number of those before this one, nil for a key that it has not met.
  func isConfirmable(with signed: SignedGrant, rank: Int?) -> Bool {
    guard let left = left(of: signed), left < pending.count else { return true }
    return rank.map { $0 < left } ?? false
  }

  /// Why the invite gives nothing to a key that has redeemed it by the grant in `signed`; nil if it
  /// gives its role.
  func refusal(of member: NodeID, with signed: SignedGrant) -> Refusal? {
    if isRevoked { return .removed }
    guard let left = left(of: signed), !confirmed.containsInOrder(member) else { return nil }
    let before = policy.ordersUses ? pending.partitionIndex { $0 >= member } : 0
    return left > before ? nil : .inviteUsedUp
  }
}
