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

    fileprivate var isChanged: Bool { if case .changed = self { true } else { false } }
  }

  /// The maximum number of identities; the least recently seen unverified one is evicted first.
  package static let limit = 4096

  /// The maximum number of names of one key, so that a member that keeps changing its name does not
  /// evict the others; the least recently seen one goes first.
  package static let namesPerKey = 8

  private struct Entry: Sendable {
    var identity: KnownIdentity
    /// What the name looks like (`LookAlikes`).
    let skeleton: String

    init(_ identity: KnownIdentity) {
      self.identity = identity
      skeleton = LookAlikes.skeleton(identity.name)
    }
  }

  /// The known identities, least recently seen first.
  private var entries: [Entry]

  /// The known identities, least recently seen first.
  public var identities: [KnownIdentity] { entries.map(\.identity) }

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
    entries = (verified + others).sorted { $0.lastSeen < $1.lastSeen }.map { Entry($0) }
  }

  /// Records that a member was seen at `seconds` since 1970, and compares its name and key with the
  /// identities known before.
  public mutating func noted(_ name: String, _ key: NodeID, at seconds: UInt64) -> Verdict {
    let isSame = { (entry: Entry) in entry.identity.key == key && entry.identity.name == name }
    if let index = entries.firstIndex(where: isSame) {
      var known = entries.remove(at: index)
      known.identity.lastSeen = max(known.identity.lastSeen, seconds)
      entries.append(known)
      return .known
    }
    var new = Entry(
      KnownIdentity(
        name: name, key: key, firstSeen: seconds, lastSeen: seconds, isVerified: false))
    var verdict = Verdict.new
    var own: [Int] = []
    // What a member's own names look like was judged when the first of them appeared.
    var isJudged = new.skeleton.isEmpty
    for (index, entry) in entries.enumerated() {
      let known = entry.identity
      if known.key == key {
        own.append(index)
        new.identity.isVerified = new.identity.isVerified || known.isVerified
        isJudged = isJudged || entry.skeleton == new.skeleton
      } else if known.name == name {
        verdict = .changed(from: known.key)
      } else if entry.skeleton == new.skeleton, !verdict.isChanged {
        verdict = .resembles(name: known.name, of: known.key)
      }
    }
    makeRoom(besides: own)
    entries.append(new)
    return isJudged && !verdict.isChanged ? .new : verdict
  }

  /// Records that the user has confirmed a key, for all names seen with it.
  public mutating func verify(_ key: NodeID) {
    for index in entries.indices where entries[index].identity.key == key {
      entries[index].identity.isVerified = true
    }
  }

  /// Removes an entry of a member that has too many, at the indices `own`, or one of any member.
  private mutating func makeRoom(besides own: [Int]) {
    if own.count >= Self.namesPerKey {
      entries.remove(at: own[0])
    } else if entries.count >= Self.limit {
      // The verified are kept for as long as others can go.
      entries.remove(at: entries.firstIndex { !$0.identity.isVerified } ?? 0)
    }
  }

  /// The known identity with this key and name; nil if there is none.
  public func identity(of key: NodeID, name: String) -> KnownIdentity? {
    entries.last { $0.identity.key == key && $0.identity.name == name }?.identity
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
