/// What a channel has laid down about its calls, and what tests plant into it.
public struct CallRules: Sendable {
  /// Whether a call ends with its initiator; otherwise, another takes it over.
  public var endsWithInitiator: Bool
  /// Whether a call that nobody may lead displaces no other.
  let needsLeader: Bool
  /// Whether the first of two concurrent calls stays.
  let precedes: @Sendable (CallInfo, CallInfo) -> Bool

  /// The rules of section 10 for a channel of this kind.
  public init(endsWithInitiator: Bool = false) {
    self.init(endsWithInitiator: endsWithInitiator, .standard)
  }

  init(endsWithInitiator: Bool, _ policy: ChannelPolicy) {
    self.endsWithInitiator = endsWithInitiator
    needsLeader = policy.needsLeader
    precedes = policy.precedes
  }
}
