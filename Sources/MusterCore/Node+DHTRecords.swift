import MusterBase
import MusterChannel
import MusterDiscovery

/// The exchange of announcements through a DHT, which the host accesses.
extension Node {
  /// The DHT keys to look up: those of `day`, in days since 1970 (UTC), and of the adjacent days.
  public func dhtKeys(day: UInt64) -> [DHTKey] { discovery.dhtKeys(day: day) }

  /// Takes the records that the host must store now under the DHT keys of `day`, in days since 1970
  /// (UTC).
  public mutating func takeDHTRecords(day: UInt64, at now: Instant) -> [DHTRecord] {
    discovery.takeDHTRecords(day: day, at: now)
  }

  /// Reports that the DHT did not store the record under this key.
  public mutating func dhtRecordFailed(_ key: KeyID, at now: Instant) {
    discovery.dhtRecordFailed(key, at: now)
  }

  /// Sets this node's addresses as observed by the DHT's nodes.
  public mutating func setSeenAddresses(_ addresses: [Address]) {
    discovery.setSeenAddresses(addresses)
  }

  /// Handles a record that was found under one of the `dhtKeys`.
  public mutating func found(
    _ announcement: [UInt8], in key: KeyID, at now: Instant
  ) -> [Output] {
    var out: [Output] = []
    perform(discovery.found(announcement, in: key, at: now), at: now, &out)
    return out
  }
}
