import MusterBase
import MusterMesh

/// For hosts that have somewhere to leave announces for others to find, as in a DHT.
extension Node {
  /// Where others' announces are looked for on `day`, counted from 1970.
  public func postingPlaces(day: UInt64) -> [PostingPlace] { discovery.postingPlaces(day: day) }

  /// The announces that are to be left now, under the tags of `day`; to be asked every second.
  public mutating func takePostings(day: UInt64, at now: Instant) -> [Posting] {
    discovery.takePostings(day: day, at: now)
  }

  /// A posting of this channel, as the posting names it, was not taken.
  public mutating func postingFailed(_ channel: ChannelID, at now: Instant) {
    discovery.postingFailed(channel, at: now)
  }

  /// Where this node is seen from the place where it leaves its announces.
  public mutating func setSeenAddresses(_ addresses: [Address]) {
    discovery.setSeenAddresses(addresses)
  }

  /// Something that was found at one of the `postingPlaces`.
  public mutating func found(
    _ announce: [UInt8], in channel: ChannelID, at now: Instant
  ) -> [Output] {
    var out: [Output] = []
    perform(discovery.found(announce, in: channel, at: now), at: now, &out)
    return out
  }
}
