import MusterBase

/// Checks that datagrams are at most `Limits.datagramBytes` long, that the number of nodes bounds
/// the traffic and the state that a node keeps about other nodes, and that frames are shown within
/// 1 s.
public struct BoundsChecker: Sendable {
  /// The number of identities so far; a node can know at most `identities` - 1 peers.
  public var identities = 0
  /// The number of persistent entries signed so far, without the presences and neighbour reports,
  /// of which each identity has at most one.
  public var entries = 0

  /// The limits of datagrams per second and ordered pair of nodes, with and without media: ten
  /// times the usual rate, but far below the rate of entries that circulate endlessly.
  static let datagramsWithMedia = 400
  static let datagramsWithoutMedia = 150
  private var sentBefore: UInt64 = 0

  /// A checker before the first identity, entry or datagram.
  public init() {}

  /// The fault in the traffic of the last second, nil for none; `sent` counts all datagrams of the
  /// run.
  public mutating func secondPassed(sent: UInt64, nodes: Int, hasMedia: Bool) -> String? {
    defer { sentBefore = sent }
    let limit = hasMedia ? Self.datagramsWithMedia : Self.datagramsWithoutMedia
    let paths = max(nodes * (nodes - 1), 2)
    return sent - sentBefore > UInt64(limit * paths)
      ? "\(sent - sentBefore) datagrams in a second among \(nodes) nodes" : nil
  }

  /// The fault in a datagram that a node sends; nil for none.
  public func sent(_ datagram: [UInt8]) -> String? {
    datagram.isEmpty || datagram.count > Limits.datagramBytes
      ? "a datagram of \(datagram.count) bytes" : nil
  }

  /// The fault when a node keeps more state than its bounds allow; nil for none.
  public func kept(members: Int, peers: Int, participants: Int) -> String? {
    let others = max(identities - 1, 0)
    if members > min(others, Limits.peersPerChannel) {
      return "\(members) members with \(others) other identities"
    }
    if peers > min(others, Limits.links) { return "\(peers) peers with \(others) other identities" }
    return participants > identities
      ? "\(participants) participants with \(identities) identities" : nil
  }

  /// The fault when a node's document has more entries than `entries` and two per identity (its
  /// presence and neighbour report); nil for none.
  public func kept(entries count: Int) -> String? {
    count > entries + 2 * identities
      ? "\(count) entries in a document of \(entries) and \(identities) identities" : nil
  }

  /// The fault when a frame is shown with a delay outside 0 to 1 s; nil for none.
  public func shown(after delay: Duration) -> String? {
    delay < .zero || delay > .seconds(1) ? "a frame delayed by \(delay.inMilliseconds) ms" : nil
  }
}
