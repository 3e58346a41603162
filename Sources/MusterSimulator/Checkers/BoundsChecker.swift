import MusterBase

/// Bounds hold: what nodes send fits in a datagram, and what they keep of others does not outgrow
/// those others.
public struct BoundsChecker: Sendable {
  /// Identities that there have been so far; no node can know more peers than these less itself.
  public var identities = 0
  /// Lasting entries that there have been so far. Each author has a presence and a hearing beside.
  public var entries = 0

  /// Datagrams that a node may send to each other one in a second, with and without media. What is
  /// usual is a tenth of that; news that goes round for ever is far above it.
  static let datagramsWithMedia = 400
  static let datagramsWithoutMedia = 150
  private var sentBefore: UInt64 = 0

  public init() {}

  /// What is wrong with the traffic of the last second, of which `sent` is all that there ever was.
  public mutating func secondPassed(sent: UInt64, nodes: Int, hasMedia: Bool) -> String? {
    defer { sentBefore = sent }
    let limit = hasMedia ? Self.datagramsWithMedia : Self.datagramsWithoutMedia
    let paths = max(nodes * (nodes - 1), 2)
    return sent - sentBefore > UInt64(limit * paths)
      ? "\(sent - sentBefore) datagrams in a second among \(nodes) nodes" : nil
  }

  /// What is wrong with a datagram that a node sends.
  public func sent(_ datagram: [UInt8]) -> String? {
    datagram.isEmpty || datagram.count > Limits.datagramBytes
      ? "a datagram of \(datagram.count) bytes" : nil
  }

  /// What is wrong with what a node keeps.
  public func kept(members: Int, peers: Int, participants: Int) -> String? {
    let others = max(identities - 1, 0)
    if members > min(others, Limits.peersPerChannel) {
      return "\(members) members with \(others) other identities"
    }
    if peers > min(others, Limits.links) { return "\(peers) peers with \(others) other identities" }
    return participants > identities
      ? "\(participants) participants with \(identities) identities" : nil
  }

  /// What is wrong with the size of a node's document.
  public func kept(entries count: Int) -> String? {
    count > entries + 2 * identities
      ? "\(count) entries in a document of \(entries) and \(identities) identities" : nil
  }

  /// What is wrong with how long a picture is to wait.
  public func shown(after delay: Duration) -> String? {
    delay < .zero || delay > .seconds(1) ? "a picture delayed by \(delay.inMilliseconds) ms" : nil
  }
}
