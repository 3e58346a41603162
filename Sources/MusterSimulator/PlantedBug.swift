import MusterChannel

/// A bug that a test plants into the nodes or their hosts to prove that a checker detects it.
package enum PlantedBug: String, Sendable, CaseIterable {
  /// Of the entries of one author and kind, nodes keep the one that arrived last instead of the
  /// newest.
  case mergeByArrival
  /// Nodes do not check the roles of authors.
  case uncheckedRole
  /// The host reports the writes of call ends as failed.
  case endsReportedFailed
  /// The host reports every commit as durable before it is written.
  case sendsBeforeWritten
  /// Of two calls the one with the smaller counter stays, whether or not people are in the other.
  case ordersByCounter
  /// A node enters a call again that its user has left.
  case entersLeftCalls
  /// Nodes that are to answer calls do not.
  case missesCalls

  /// The channel policy of nodes with this bug.
  var policy: ChannelPolicy {
    switch self {
    case .mergeByArrival: ChannelPolicy(name: rawValue, replaces: { _, _ in true })
    case .uncheckedRole: ChannelPolicy(name: rawValue, permits: { _, _ in true })
    case .ordersByCounter:
      ChannelPolicy(
        name: rawValue,
        precedes: { $0.order != $1.order ? $0.order < $1.order : $0.id < $1.id })
    case .endsReportedFailed, .sendsBeforeWritten, .entersLeftCalls, .missesCalls: .standard
    }
  }
}

extension ChannelPolicy {
  /// The policy of a patched node that ignores the limits of its own role.
  static let lawless = ChannelPolicy(name: "lawless", permits: { $0 || $1 })
}
