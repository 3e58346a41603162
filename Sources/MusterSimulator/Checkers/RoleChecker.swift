import MusterBase
import MusterChannel
import MusterWire

/// Checks that actions beyond a member's role have no effect at any other node.
///
/// The expected roles follow from the owners' commands, not from the state of nodes. While grants
/// spread, a node may apply any grant made so far; after convergence only the latest counts.
public struct RoleChecker: Sendable {
  /// The order of grants: by Lamport clock, then by the id of the owner.
  public struct Order: Comparable, Sendable {
    /// The Lamport clock of the entry; higher clocks take precedence.
    public var lamport: UInt64
    /// The owner that signed the entry; breaks ties between equal clocks.
    public var author: NodeID

    /// The order of the entry with this Lamport clock and author.
    public init(lamport: UInt64, author: NodeID) {
      self.lamport = lamport
      self.author = author
    }

    public static func < (a: Order, b: Order) -> Bool {
      a.lamport != b.lamport ? a.lamport < b.lamport : a.author < b.author
    }
  }

  private struct Statement: Sendable {
    var role: Role
    var expiresAt: UInt64
    var order: Order
    /// The epoch of the key that an invite is for; nil for a direct grant.
    var invitedIn: UInt32?
  }

  private let kind: ChannelKind
  private let settings: ChannelSettings
  private let owner: NodeID?
  private var statements = PeerTable<NodeID, [Statement]>()
  /// The latest key change that excluded each member.
  private var removals = PeerTable<NodeID, Order>()
  /// The members with several invites: the document determines which invite counts.
  private var ambiguous: [NodeID] = []
  /// The number of key changes by the owner so far.
  public private(set) var epoch: UInt32 = 0
  /// The members excluded by key changes, and the epochs that these began.
  public private(set) var removed: [(member: NodeID, epoch: UInt32)] = []

  /// `owner` is nil in open channels, where every member is a presenter.
  public init(owner: NodeID?, settings: ChannelSettings) {
    kind = owner == nil ? .open : .created
    self.owner = owner
    self.settings = settings
  }

  // MARK: Grants

  /// Records that an owner grants a role directly; `expiresAt` is in seconds since 1970, 0 for
  /// never.
  public mutating func granted(
    _ role: Role, to member: NodeID, expiresAt: UInt64, order: Order
  ) {
    add(Statement(role: role, expiresAt: expiresAt, order: order, invitedIn: nil), to: member)
  }

  /// Records that a member joins with an invite of `epoch`, which is valid until a later one
  /// excludes somebody; `expiresAt` is in seconds since 1970, 0 for never.
  public mutating func invited(
    _ member: NodeID, as role: Role, expiresAt: UInt64, epoch: UInt32, order: Order
  ) {
    let known = statements[member] ?? []
    if known.contains(where: { $0.invitedIn != nil && $0.order == order }) { return }
    if known.contains(where: { $0.invitedIn != nil }) { ambiguous.append(member) }
    add(Statement(role: role, expiresAt: expiresAt, order: order, invitedIn: epoch), to: member)
  }

  /// Records that the owner changes the key, and excludes `members`.
  public mutating func changedKey(removing members: [NodeID]) {
    epoch += 1
    removed += members.map { ($0, epoch) }
  }

  /// Voids the direct grants to these members that precede the key change at `order`.
  public mutating func shutOut(_ members: [NodeID], order: Order) {
    for member in members { removals[member] = max(removals[member] ?? order, order) }
  }

  private mutating func add(_ statement: Statement, to member: NodeID) {
    var known = statements[member] ?? []
    known.append(statement)
    statements[member] = known
  }

  // MARK: Expected roles

  /// Whether the commands alone do not determine the member's role.
  public func isAmbiguous(_ member: NodeID) -> Bool { ambiguous.contains(member) }

  /// The role that a member has after convergence, at a wall time in seconds since 1970.
  public func role(of member: NodeID, at wallSeconds: UInt64) -> Role {
    guard kind == .created else { return .presenter }
    if member == owner { return .owner }
    let all = statements[member] ?? []
    let removal = removals[member]
    let direct = all.filter { $0.invitedIn == nil && removal ?? $0.order <= $0.order }
      .max { $0.order < $1.order }
    let least = removed.last?.epoch ?? 0
    let invite = all.filter { $0.invitedIn ?? 0 >= least && $0.invitedIn != nil }
      .max { $0.order < $1.order }
    func role(_ statement: Statement?) -> Role {
      guard let statement, statement.expiresAt == 0 || wallSeconds < statement.expiresAt else {
        return .none
      }
      return statement.role
    }
    guard let direct else { return role(invite) }
    guard let invite, direct.order < invite.order else { return role(direct) }
    return max(role(direct), role(invite))
  }

  /// Whether any node may ever have considered the member to have the capability; with `strictly`,
  /// whether all nodes must do so now.
  public func may(
    _ capability: Capability, _ member: NodeID, at wallSeconds: UInt64, strictly: Bool
  ) -> Bool {
    if strictly, !isAmbiguous(member) {
      return capability.isAllowed(to: role(of: member, at: wallSeconds), in: settings)
    }
    guard kind == .created, member != owner else {
      return capability.isAllowed(to: role(of: member, at: wallSeconds), in: settings)
    }
    return (statements[member] ?? []).contains { capability.isAllowed(to: $0.role, in: settings) }
  }
}
