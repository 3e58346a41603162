import MusterBase
import MusterChannel
import MusterDiscovery

/// For hosts that have somewhere to leave announces for others to find, as in a DHT.
extension Node {
  /// Where others' announces are looked for on `day`, counted from 1970.
  public func dhtKeys(day: UInt64) -> [DHTKey] { discovery.dhtKeys(day: day) }

  /// The announces that are to be left now, under the tags of `day`; to be asked every second.
  public mutating func takeDHTRecords(day: UInt64, at now: Instant) -> [DHTRecord] {
    discovery.takeDHTRecords(day: day, at: now)
  }

  /// A record under this key, was not taken.
  public mutating func dhtRecordFailed(_ key: KeyID, at now: Instant) {
    discovery.dhtRecordFailed(key, at: now)
  }

  /// Where this node is seen from the place where it leaves its announces.
  public mutating func setSeenAddresses(_ addresses: [Address]) {
    discovery.setSeenAddresses(addresses)
  }

  /// Something that was found at one of the `dhtKeys`.
  public mutating func found(
    _ announcement: [UInt8], in key: KeyID, at now: Instant
  ) -> [Output] {
    var out: [Output] = []
    perform(discovery.found(announcement, in: key, at: now), at: now, &out)
    return out
  }
}
