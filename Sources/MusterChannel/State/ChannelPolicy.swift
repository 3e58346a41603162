/// The two rules of a channel that tests bend, to plant a bug or to act as a patched node. Every
/// node that ships goes by `standard`.
package struct ChannelPolicy: Sendable, Equatable {
  /// Policies of one name count as equal.
  package let name: String
  /// Whether an author's new entry replaces the `known` one of the same kind.
  package let replaces: @Sendable (_ known: SignedEntry, _ new: SignedEntry) -> Bool
  /// Whether something is done; `isAllowed` by the role of its author, which `isOwn`, this node, or
  /// another member.
  package let permits: @Sendable (_ isAllowed: Bool, _ isOwn: Bool) -> Bool

  package init(
    name: String,
    replaces: @escaping @Sendable (SignedEntry, SignedEntry) -> Bool = { known, new in known < new
    },
    permits: @escaping @Sendable (Bool, Bool) -> Bool = { isAllowed, _ in isAllowed }
  ) {
    self.name = name
    self.replaces = replaces
    self.permits = permits
  }

  package static let standard = ChannelPolicy(name: "standard")

  package static func == (a: ChannelPolicy, b: ChannelPolicy) -> Bool { a.name == b.name }
}
