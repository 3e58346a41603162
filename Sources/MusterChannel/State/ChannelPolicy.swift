/// Rules of a channel that tests override, to inject a fault or to simulate a modified node.
/// Production code uses `standard`.
package struct ChannelPolicy: Sendable, Equatable {
  /// The name by which policies are compared.
  package let name: String
  /// Whether an author's new entry replaces the `known` one of the same kind.
  package let replaces: @Sendable (_ known: SignedEntry, _ new: SignedEntry) -> Bool
  /// Whether an action is carried out. `isAllowed`: the author's role permits the action; `isOwn`:
  /// the author is this node.
  package let permits: @Sendable (_ isAllowed: Bool, _ isOwn: Bool) -> Bool
  /// Whether the first of two concurrent calls stays.
  package let precedes: @Sendable (CallInfo, CallInfo) -> Bool
  /// Whether a call that nobody may lead displaces no other.
  package let needsLeader: Bool
  /// Whether principals share the space of full tables; otherwise the oldest entry gives way.
  package let dividesFairly: Bool
  /// Whether an invite has a number of uses.
  package let limitsUses: Bool
  /// Whether those with the smallest ids get the uses of an invite that are not confirmed.
  package let ordersUses: Bool
  /// Whether a peer gets nothing of a created channel before it has a role.
  package let requiresRole: Bool

  package init(
    name: String,
    replaces: @escaping @Sendable (SignedEntry, SignedEntry) -> Bool = { known, new in known < new
    },
    permits: @escaping @Sendable (Bool, Bool) -> Bool = { isAllowed, _ in isAllowed },
    precedes: @escaping @Sendable (CallInfo, CallInfo) -> Bool = CallInfo.precedes,
    needsLeader: Bool = true, dividesFairly: Bool = true, limitsUses: Bool = true,
    ordersUses: Bool = false, requiresRole: Bool = true
  ) {
    self.name = name
    self.replaces = replaces
    self.permits = permits
    self.precedes = precedes
    self.needsLeader = needsLeader
    self.dividesFairly = dividesFairly
    self.limitsUses = limitsUses
    self.ordersUses = ordersUses
    self.requiresRole = requiresRole
  }

  package static let standard = ChannelPolicy(name: "standard")

  package static func == (a: ChannelPolicy, b: ChannelPolicy) -> Bool { a.name == b.name }
}
