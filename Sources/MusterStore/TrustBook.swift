import MusterBase

/// The known names and keys of one channel, for trust on first use (TOFU). The type does no I/O.
public struct TrustBook: Sendable {
  /// The result of comparing a member with the known identities.
  public enum Verdict: Equatable, Sendable {
    /// The name is new; the key may be known under another name.
    case new
    /// The name was seen with this key before.
    case known
    /// The name is known, but only with other keys: possible impersonation. `from` is the key last
    /// seen with the name.
    case changed(from: NodeID)
  }

  /// The maximum number of identities; the least recently seen unverified one is evicted first.
  package static let limit = 4096

  /// The known identities, least recently seen first.
  public private(set) var identities: [KnownIdentity]

  /// Keeps only the most recently seen identities: at most `limit` / 2 verified and `limit` / 2
  /// unverified ones.
  public init(_ identities: [KnownIdentity]) {
    let sorted = identities.sorted { $0.lastSeen < $1.lastSeen }
    let verified = sorted.filter(\.isVerified).suffix(Self.limit / 2)
    let others = sorted.filter { !$0.isVerified }.suffix(Self.limit / 2)
    self.identities = (verified + others).sorted { $0.lastSeen < $1.lastSeen }
  }

  /// Records that a member was seen at `seconds` since 1970, and compares its name and key with the
  /// identities known before.
  public mutating func noted(_ name: String, _ key: NodeID, at seconds: UInt64) -> Verdict {
    if let index = identities.firstIndex(where: { $0.name == name && $0.key == key }) {
      var known = identities.remove(at: index)
      known.lastSeen = max(known.lastSeen, seconds)
      identities.append(known)
      return .known
    }
    let former = identities.last { $0.name == name }
    identities.append(
      KnownIdentity(
        name: name, key: key, firstSeen: seconds, lastSeen: seconds,
        isVerified: identities.contains { $0.key == key && $0.isVerified }))
    // A member that keeps changing its name must not evict verified identities.
    if identities.count > Self.limit {
      identities.remove(at: identities.firstIndex { !$0.isVerified } ?? 0)
    }
    return former.map { .changed(from: $0.key) } ?? .new
  }

  /// The known identity with this key and name; nil if there is none.
  public func identity(of key: NodeID, name: String) -> KnownIdentity? {
    identities.last { $0.key == key && $0.name == name }
  }

  /// The distinct known keys whose short id, full hexadecimal form or name equals `text`.
  public func keys(matching text: String) -> [NodeID] {
    var keys: [NodeID] = []
    for identity in identities
    where identity.key.short == text || identity.key.key.hex == text || identity.name == text {
      if !keys.contains(identity.key) { keys.append(identity.key) }
    }
    return keys
  }
}
