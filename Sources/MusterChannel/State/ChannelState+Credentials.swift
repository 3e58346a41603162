import MusterBase
import MusterCrypto
import MusterWire

/// Credentials: the entries by which nodes that do not know each other as members prove their roles
/// to each other, before they exchange anything else.
extension ChannelState {
  /// The credentials of a member: the grants that decide on its role, and before them those to the
  /// owners who signed them; then its redemption of an invite.
  public func credentials(of member: NodeID) -> [[UInt8]] {
    guard owner != nil else { return [] }
    let redemption = gossip.document.newest(.redemption, of: member)
    let grants = rights.grants(of: member, at: wallSeconds)
    return (grants + [redemption].compactMap { $0 }).map(\.bytes)
  }

  /// Whether an owner has granted `member` a role, or taken one away.
  public func knows(_ member: NodeID) -> Bool { rights.knows(member) }

  /// Whether the document has the entry with these bytes.
  public func contains(_ bytes: [UInt8]) -> Bool {
    gossip.document.contains(SignedEntry.id(of: bytes))
  }

  /// Whether `bytes` may be a credential of `peer`, judging by author and content and not yet by
  /// the signature, which costs more: a grant for it, its redemption, or the channel owner's
  /// appointment of another owner.
  public func isCredential(_ bytes: [UInt8], of peer: NodeID) -> Bool {
    guard bytes.count <= Limits.entryBytes,
      let entry = try? Entry(decoding: bytes.dropLast(Entry.signatureBytes))
    else { return false }
    switch entry.body {
    case .grant(let grant) where grant.subject == peer:
      return !grant.isBearer && rights.isGranter(entry.author)
    case .grant(let grant):
      return !grant.isBearer && grant.role == .owner && entry.author == owner
    case .redemption(let redemption):
      let grant = try? Entry(decoding: redemption.grant.dropLast(Entry.signatureBytes))
      return entry.author == peer && grant.map { rights.isGranter($0.author) } ?? false
    default: return false
    }
  }

  /// Processes a credential of `peer`, which is not a member yet. `refusal` is the reason if it is
  /// a redemption that gives no role; it is then not taken, since anyone with an invite can make
  /// one.
  public mutating func receiveCredential(
    _ bytes: [UInt8], from peer: NodeID, at now: Instant
  ) -> (outputs: [Output], refusal: Refusal?) {
    guard isCredential(bytes, of: peer), let entry = try? SignedEntry.verified(bytes, in: channel)
    else { return ([], nil) }
    if case .redemption(let redemption) = entry.entry.body {
      let decision = rights.decision(
        on: redemption, shownBy: peer, to: identity.id, at: wallSeconds)
      guard let decision, decision.refusal == nil else { return ([], decision?.refusal) }
    } else {
      guard rights.admits(entry.entry, from: peer, at: identity.id) else { return ([], nil) }
    }
    let outputs = commit(at: now) { state, out in
      state.apply(state.gossip.broadcast(entry, at: now), at: now, &out)
    }
    return (outputs, nil)
  }
}
