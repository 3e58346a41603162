import MusterBase
import MusterWire

/// The entries of a document that concern calls, and who came by which invite.
public struct CallEntries: Sendable {
  /// The claims in document order.
  public var claims: [SignedEntry]
  /// The ends in document order.
  public var ends: [SignedEntry]
  /// The newest joining of each author.
  public var joinings: [SignedEntry]
  /// The moderations that count (`Rights.moderates`) in document order.
  public var moderations: [SignedEntry]
  /// The invite by which a member came (`Rights.invite`); nil if it came by none.
  public var invite: @Sendable (NodeID) -> NodeID?

  /// Collects entries; those of other kinds are ignored.
  public init(
    claims: [SignedEntry], ends: [SignedEntry], joinings: [SignedEntry],
    moderations: [SignedEntry] = [], invite: @escaping @Sendable (NodeID) -> NodeID? = { _ in nil }
  ) {
    self.claims = claims
    self.ends = ends
    self.joinings = joinings
    self.moderations = moderations
    self.invite = invite
  }

  /// Whether a moderation removes this member from this call, so that its ends and its claims of
  /// later terms do not count.
  func isRemoved(_ member: NodeID, from call: CallID) -> Bool {
    moderations.contains { entry in
      guard let removal = entry.removal else { return false }
      return removal.member == member && removal.call == call
    }
  }

  /// The moderation that keeps a member out of a call; nil for none.
  ///
  /// A removal holds for the sitting: it keeps the member out of the call that it names and of all
  /// that had been started by then. It also keeps the other keys of the member's invite out of the
  /// call that it names, except those that were in the call at that time. Those say so themselves,
  /// so that a patched node may slip in; for good, an owner revokes the invite.
  ///
  /// - Parameter joined: when the member came into the call, as its presence says; nil if it is
  ///   about to.
  func removal(of member: NodeID, joined: UInt64?, from call: CallInfo) -> SignedEntry? {
    // A full document has hundreds of moderations and more joinings.
    lazy var since = min(joined ?? .max, joiningTime(of: member, to: call.id) ?? .max)
    return moderations.first { entry in
      guard let removal = entry.removal else { return false }
      let time = entry.entry.lamport
      let isSameCall = removal.call == call.id
      if removal.member == member { return isSameCall || call.order < time }
      guard isSameCall, let key = invite(member), key == invite(removal.member) else {
        return false
      }
      return since >= time
    }
  }

  /// The Lamport counter of a member's newest joining, if that names the call.
  private func joiningTime(of member: NodeID, to call: CallID) -> UInt64? {
    guard let newest = joinings.first(where: { $0.entry.author == member }),
      case .joining(let joining) = newest.entry.body, joining.call == call
    else { return nil }
    return newest.entry.lamport
  }
}

extension SignedEntry {
  /// The moderation that removes a member from a call; nil for any other entry.
  fileprivate var removal: Moderation? {
    guard case .moderation(let moderation) = entry.body, moderation.actions.contains(.remove)
    else { return nil }
    return moderation
  }
}
