import MusterBase
import MusterChannel
import MusterDiscovery

/// Announcements through a DHT, which the host provides.
extension Node {
  /// The DHT keys of other members' announcements on `day`, counted from 1970.
  public func dhtKeys(day: UInt64) -> [DHTKey] { discovery.dhtKeys(day: day) }

  /// Takes the records to store now, under the tags of `day`; the host calls this every second.
  public mutating func takeDHTRecords(day: UInt64, at now: Instant) -> [DHTRecord] {
    discovery.takeDHTRecords(day: day, at: now)
  }

  /// Reports that the DHT did not store the record under this key.
  public mutating func dhtRecordFailed(_ key: KeyID, at now: Instant) {
    discovery.dhtRecordFailed(key, at: now)
  }

  /// Sets this node's addresses as the DHT's nodes report them.
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
