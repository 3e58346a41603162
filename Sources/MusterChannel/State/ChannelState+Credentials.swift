import MusterBase
import MusterWire

/// Credentials: the entries by which nodes that do not know each other as members prove their roles
/// to each other, before they exchange anything else.
extension ChannelState {
  /// The credentials of a member: its two newest direct grants and its redemption of an invite, and
  /// before them the channel owner's grants to the owners who signed these.
  public func credentials(of member: NodeID) -> [[UInt8]] {
    guard owner != nil else { return [] }
    let redemption = gossip.document.newest(.redemption, of: member)
    return (rights.grants(of: member) + [redemption].compactMap { $0 }).map(\.bytes)
  }

  /// Whether someone is a member, or has been one.
  public func knows(_ member: NodeID) -> Bool { rights.knows(member) }

  /// Whether the document has the entry with these bytes.
  public func contains(_ bytes: [UInt8]) -> Bool {
    gossip.document.contains(SignedEntry.id(of: bytes))
  }

  /// Processes an entry with which a node that is not a member yet proves its role: its redemption,
  /// a grant for it, or that of the owner who signed these. `Rights` decides whether it is valid.
  public mutating func receiveCredential(
    _ bytes: [UInt8], from peer: NodeID, at now: Instant
  ) -> [Output] {
    guard let entry = try? SignedEntry.verified(bytes, in: channel),
      rights.admits(entry.entry, from: peer)
    else { return [] }
    switch entry.entry.body {
    case .redemption where entry.entry.author == peer: break
    case .grant(let grant) where grant.subject == peer: break
    case .grant(let grant) where grant.role == .owner && entry.entry.author == owner: break
    default: return []
    }
    return commit(at: now) { state, out in
      state.apply(state.gossip.broadcast(entry, at: now), at: now, &out)
    }
  }

  /// Why the redemption in `bytes` gives no role to the peer that has shown it; nil if it may give
  /// one, and for other entries.
  public func refusal(ofCredential bytes: [UInt8], from peer: NodeID) -> Refusal? {
    guard let entry = try? SignedEntry.verified(bytes, in: channel).entry, entry.author == peer,
      case .redemption(let redemption) = entry.body
    else { return nil }
    return rights.refusal(redeeming: redemption, by: peer, at: wallSeconds)
  }
}
