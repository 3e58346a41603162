import MusterBase

/// The known names and keys of one channel, for trust on first use (TOFU). A value without I/O.
public struct TrustBook: Sendable {
  /// The result of comparing a member with the known identities.
  public enum Verdict: Equatable, Sendable {
    /// The name is new; the key may be known under another name.
    case new
    /// The name has the key that is known for it.
    case known
    /// The name was known with another key: possible impersonation.
    case changed(from: NodeID)
  }

  /// The maximum number of identities; the least recently seen are evicted first.
  package static let limit = 4096

  /// The known identities, least recently seen first.
  public private(set) var identities: [KnownIdentity]

  /// Keeps the most recently seen identities, up to half of `limit` each for verified and for
  /// unverified ones.
  public init(_ identities: [KnownIdentity]) {
    let sorted = identities.sorted { $0.lastSeen < $1.lastSeen }
    let verified = sorted.filter(\.isVerified).suffix(Self.limit / 2)
    let others = sorted.filter { !$0.isVerified }.suffix(Self.limit / 2)
    self.identities = (verified + others).sorted { $0.lastSeen < $1.lastSeen }
  }

  /// Records that a member was seen, and compares its name and key with the known identities.
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

  /// The identity of a key under this name; nil if unknown.
  public func identity(of key: NodeID, name: String) -> KnownIdentity? {
    identities.last { $0.key == key && $0.name == name }
  }

  /// The keys with this short id, full hexadecimal key or name.
  public func keys(matching text: String) -> [NodeID] {
    var keys: [NodeID] = []
    for identity in identities
    where identity.key.short == text || identity.key.key.hex == text || identity.name == text {
      if !keys.contains(identity.key) { keys.append(identity.key) }
    }
    return keys
  }
}
