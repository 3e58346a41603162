import MusterBase

/// The first MACs of answered initiations, which detect a replay by a look-up.
///
/// Every initiation has a different MAC, because its ephemeral key differs.
struct AnsweredInitiations: Sendable {
  /// The number of MACs kept. An older replay is still rejected by its counter, but only after a
  /// Diffie-Hellman computation.
  static let limit = 1024

  private var recent = RingBuffer<[UInt8]>(capacity: limit)

  func contains(_ mac: some Collection<UInt8>) -> Bool {
    (0..<recent.count).contains { recent[$0].elementsEqual(mac) }
  }

  mutating func insert(_ mac: some Collection<UInt8>) { recent.append(Array(mac)) }
}
