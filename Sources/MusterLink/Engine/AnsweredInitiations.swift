import MusterBase

/// The first MACs of initiations that were taken up, so that a replay is known by a look-up.
///
/// A MAC differs with every initiation, even of one peer, since its ephemeral key does.
struct AnsweredInitiations: Sendable {
  /// Those of the last minutes; an older replay still fails at its counter, after Diffie-Hellman.
  static let limit = 1024

  private var recent = RingBuffer<[UInt8]>(capacity: limit)

  func contains(_ mac: some Collection<UInt8>) -> Bool {
    (0..<recent.count).contains { recent[$0].elementsEqual(mac) }
  }

  mutating func insert(_ mac: some Collection<UInt8>) { recent.append(Array(mac)) }
}
