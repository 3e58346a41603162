import MusterChannel

/// A weakness that a test plants into all members' nodes to prove that a checker detects it.
package enum PlantedWeakness: String, Sendable, CaseIterable {
  /// The entries with the highest counters stay, whoever signed them.
  case retentionByCounter
  /// Any number of keys may come by an invite.
  case unlimitedInvites
  /// Of those who come by an invite, some go if others have smaller keys.
  case orderedUses
  /// Nodes tell a peer that has not shown a role what they tell members.
  case gossipBeforeRole
  /// A call displaces others even if nobody in it may lead it.
  case callsWithoutLeader

  var policy: ChannelPolicy {
    switch self {
    case .retentionByCounter: ChannelPolicy(name: rawValue, dividesFairly: false)
    case .unlimitedInvites: ChannelPolicy(name: rawValue, limitsUses: false)
    case .orderedUses: ChannelPolicy(name: rawValue, ordersUses: true)
    case .gossipBeforeRole: ChannelPolicy(name: rawValue, requiresRole: false)
    case .callsWithoutLeader: ChannelPolicy(name: rawValue, needsLeader: false)
    }
  }
}
