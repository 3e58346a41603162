import MusterBase
import MusterChannel
import MusterDiscovery

/// For hosts that have somewhere to leave announcements for others to find, as in a DHT.
extension Node {
  /// Where others' announcements are looked for on `day`, counted from 1970.
  public func dhtKeys(day: UInt64) -> [DHTKey] { discovery.dhtKeys(day: day) }

  /// The records to store now, under the tags of `day`; the host asks every second.
  public mutating func takeDHTRecords(day: UInt64, at now: Instant) -> [DHTRecord] {
    discovery.takeDHTRecords(day: day, at: now)
  }

  /// The DHT did not store the record under this key.
  public mutating func dhtRecordFailed(_ key: KeyID, at now: Instant) {
    discovery.dhtRecordFailed(key, at: now)
  }

  /// This node's addresses as the DHT's nodes report them.
  public mutating func setSeenAddresses(_ addresses: [Address]) {
    discovery.setSeenAddresses(addresses)
  }

  /// A record that was found under one of the `dhtKeys`.
  public mutating func found(
    _ announcement: [UInt8], in key: KeyID, at now: Instant
  ) -> [Output] {
    var out: [Output] = []
    perform(discovery.found(announcement, in: key, at: now), at: now, &out)
    return out
  }
}
