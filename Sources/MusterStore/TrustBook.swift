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
    /// The name looks like one that is known, but only with other keys.
    case resembles(name: String, of: NodeID)
  }

  /// The maximum number of identities; the least recently seen unverified one is evicted first.
  package static let limit = 4096

  /// The maximum number of names of one key, so that a member that keeps changing its name does not
  /// evict the others; the least recently seen one goes first.
  package static let namesPerKey = 8

  /// The known identities, least recently seen first.
  public private(set) var identities: [KnownIdentity]
  /// What their names look like.
  private var skeletons: [String]

  /// Keeps only the most recently seen identities: at most `namesPerKey` of a key, and `limit` / 2
  /// verified and `limit` / 2 unverified ones.
  public init(_ identities: [KnownIdentity]) {
    var names: [NodeID: Int] = [:]
    let sorted = identities.sorted { $0.lastSeen < $1.lastSeen }.reversed().filter { identity in
      names[identity.key, default: 0] += 1
      return names[identity.key, default: 0] <= Self.namesPerKey
    }.reversed()
    let verified = sorted.filter(\.isVerified).suffix(Self.limit / 2)
    let others = sorted.filter { !$0.isVerified }.suffix(Self.limit / 2)
    self.identities = (verified + others).sorted { $0.lastSeen < $1.lastSeen }
    skeletons = self.identities.map { LookAlikes.skeleton($0.name) }
  }

  /// Records that a member was seen at `seconds` since 1970, and compares its name and key with the
  /// identities known before.
  public mutating func noted(_ name: String, _ key: NodeID, at seconds: UInt64) -> Verdict {
    if let index = identities.firstIndex(where: { $0.name == name && $0.key == key }) {
      var known = identities.remove(at: index)
      known.lastSeen = max(known.lastSeen, seconds)
      identities.append(known)
      skeletons.append(skeletons.remove(at: index))
      return .known
    }
    let skeleton = LookAlikes.skeleton(name)
    let verdict = verdict(name, skeleton, key)
    let isVerified = identities.contains { $0.key == key && $0.isVerified }
    makeRoom(for: key)
    identities.append(
      KnownIdentity(
        name: name, key: key, firstSeen: seconds, lastSeen: seconds, isVerified: isVerified))
    skeletons.append(skeleton)
    return verdict
  }

  private func verdict(_ name: String, _ skeleton: String, _ key: NodeID) -> Verdict {
    if let former = identities.last(where: { $0.name == name }) {
      return .changed(from: former.key)
    }
    var found = Verdict.new
    for (identity, other) in zip(identities, skeletons) where other == skeleton {
      // What a member's own names look like was judged when the first of them appeared.
      if identity.key == key { return .new }
      found = skeleton.isEmpty ? .new : .resembles(name: identity.name, of: identity.key)
    }
    return found
  }

  private mutating func makeRoom(for key: NodeID) {
    let own = identities.indices.filter { identities[$0].key == key }
    if own.count >= Self.namesPerKey { remove(at: own[0]) }
    // The verified are kept for as long as others can go.
    if identities.count >= Self.limit {
      remove(at: identities.firstIndex { !$0.isVerified } ?? 0)
    }
  }

  private mutating func remove(at index: Int) {
    identities.remove(at: index)
    skeletons.remove(at: index)
  }

  /// The known identity with this key and name; nil if there is none.
  public func identity(of key: NodeID, name: String) -> KnownIdentity? {
    identities.last { $0.key == key && $0.name == name }
  }

  /// The distinct known keys that `text` may mean: that with this id, or else those with this name.
  public func keys(matching text: String) -> [NodeID] {
    let isID = Hex.isID(text)
    var keys: [NodeID] = []
    for identity in identities where isID ? identity.key.isNamed(by: text) : identity.name == text {
      if !keys.contains(identity.key) { keys.append(identity.key) }
    }
    return keys
  }
}
