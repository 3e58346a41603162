import MusterBase

/// Bounds: datagrams have at most `Limits.datagramBytes`, and the state that a node keeps about
/// others is bounded by their number.
public struct BoundsChecker: Sendable {
  /// Identities that there have been so far; no node can know more peers than these less itself.
  public var identities = 0
  /// Lasting entries signed so far; each author has a presence and a neighbour report besides.
  public var entries = 0

  /// Datagrams that a node may send to each other one per second, with and without media: ten times
  /// the usual rate, and far below that of entries that circulate without end.
  static let datagramsWithMedia = 400
  static let datagramsWithoutMedia = 150
  private var sentBefore: UInt64 = 0

  /// No identities, entries or datagrams are counted yet.
  public init() {}

  /// The fault of the traffic of the last second; `sent` counts all datagrams of the run.
  public mutating func secondPassed(sent: UInt64, nodes: Int, hasMedia: Bool) -> String? {
    defer { sentBefore = sent }
    let limit = hasMedia ? Self.datagramsWithMedia : Self.datagramsWithoutMedia
    let paths = max(nodes * (nodes - 1), 2)
    return sent - sentBefore > UInt64(limit * paths)
      ? "\(sent - sentBefore) datagrams in a second among \(nodes) nodes" : nil
  }

  /// The fault of a datagram that a node sends; nil when it has none.
  public func sent(_ datagram: [UInt8]) -> String? {
    datagram.isEmpty || datagram.count > Limits.datagramBytes
      ? "a datagram of \(datagram.count) bytes" : nil
  }

  /// The fault of the amount of state that a node keeps; nil when it has none.
  public func kept(members: Int, peers: Int, participants: Int) -> String? {
    let others = max(identities - 1, 0)
    if members > min(others, Limits.peersPerChannel) {
      return "\(members) members with \(others) other identities"
    }
    if peers > min(others, Limits.links) { return "\(peers) peers with \(others) other identities" }
    return participants > identities
      ? "\(participants) participants with \(identities) identities" : nil
  }

  /// The fault of the size of a node's document; nil when it has none.
  public func kept(entries count: Int) -> String? {
    count > entries + 2 * identities
      ? "\(count) entries in a document of \(entries) and \(identities) identities" : nil
  }

  /// The fault of the delay that a frame is shown after; nil when it has none.
  public func shown(after delay: Duration) -> String? {
    delay < .zero || delay > .seconds(1) ? "a frame delayed by \(delay.inMilliseconds) ms" : nil
  }
}
