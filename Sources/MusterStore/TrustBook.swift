import MusterBase

/// Which key belongs to which name in one channel, by first sight: a value without I/O.
public struct TrustBook: Sendable {
  public enum Verdict: Equatable, Sendable {
    case new
    case known
    /// The name belonged to another key.
    case changed(from: NodeID)
  }

  /// Names remembered; the ones not seen for longest go first.
  package static let limit = 4096

  /// In the order in which they were last seen.
  public private(set) var identities: [KnownIdentity]

  public init(_ identities: [KnownIdentity]) {
    let sorted = identities.sorted { $0.lastSeen < $1.lastSeen }
    let verified = sorted.filter(\.isVerified).suffix(Self.limit / 2)
    let others = sorted.filter { !$0.isVerified }.suffix(Self.limit / 2)
    self.identities = (verified + others).sorted { $0.lastSeen < $1.lastSeen }
  }

  /// A member with this name and key is there.
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
    // Whoever comes under ever new names cannot wash out those that were compared by voice.
    if identities.count > Self.limit {
      identities.remove(at: identities.firstIndex { !$0.isVerified } ?? 0)
    }
    return former.map { .changed(from: $0.key) } ?? .new
  }

  /// What is known of a key under this name.
  public func identity(of key: NodeID, name: String) -> KnownIdentity? {
    identities.last { $0.key == key && $0.name == name }
  }

  /// The keys that somebody can mean by an id, a key or a name.
  public func keys(matching text: String) -> [NodeID] {
    var keys: [NodeID] = []
    for identity in identities
    where identity.key.short == text || identity.key.key.hex == text || identity.name == text {
      if !keys.contains(identity.key) { keys.append(identity.key) }
    }
    return keys
  }
}
