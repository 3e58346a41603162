import MusterChannel

/// A bug that a test plants into the nodes or their hosts, to show that a checker finds it.
package enum PlantedBug: String, Sendable, CaseIterable {
  /// Of an author's entries of one kind the last to arrive counts, not the newest.
  case mergeByArrival
  /// Nobody's role is looked at.
  case uncheckedRole
  /// The host reports that the end of a call could not be written.
  case endsReportedFailed
  /// The host reports every commit as written before it is.
  case sendsBeforeWritten

  /// The rules that nodes with this bug go by.
  var policy: ChannelPolicy {
    switch self {
    case .mergeByArrival: ChannelPolicy(name: rawValue, replaces: { _, _ in true })
    case .uncheckedRole: ChannelPolicy(name: rawValue, permits: { _, _ in true })
    case .endsReportedFailed, .sendsBeforeWritten: .standard
    }
  }
}

extension ChannelPolicy {
  /// A patched node: it does what its own role forbids.
  static let lawless = ChannelPolicy(name: "lawless", permits: { $0 || $1 })
}
