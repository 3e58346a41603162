import MusterBase
import MusterCrypto
import MusterWire

/// Finding members by announces that are left somewhere, as in a DHT, rather than told.
extension Discovery {
  /// Where others' announces are looked for: under the tags of `day` (since 1970) and of the days
  /// around it, so that a clock that is wrong by hours keeps nobody apart.
  public func postingPlaces(day: UInt64) -> [PostingPlace] {
    channels.filter { !$0.isPassive }.flatMap { channel in
      [day &- 1, day, day &+ 1].map {
        PostingPlace(channel: channel.id, tag: channel.key.dhtTag(day: $0))
      }
    }
  }

  /// The announces that are to be left now, each under its channel's tag of `day`. A host that has
  /// nowhere to leave them never asks.
  public mutating func takePostings(day: UInt64, at now: Instant) -> [Posting] {
    var postings: [Posting] = []
    for index in channels.indices where !channels[index].isPassive {
      guard channels[index].postings.takeDue(day: day, at: now, jitter: &jitter) else { continue }
      let outside = seenAddresses + rendezvous.outside + seenByNeighbours
      postings.append(
        Posting(
          channel: channels[index].id, tag: channels[index].key.dhtTag(day: day),
          announce: nextAnnounce(in: index, reachable(outside), at: now)))
    }
    return postings
  }

  /// A posting of this channel was not taken; it is due again soon.
  public mutating func postingFailed(_ channel: ChannelID, at now: Instant) {
    for index in channels.indices where channels[index].id == channel {
      channels[index].postings.failed(at: now)
    }
  }

  /// Says where a DHT sees this node: one address of each family at most. It is announced there
  /// only.
  public mutating func setSeenAddresses(_ addresses: [Address]) {
    var usable: [Address] = []
    for address in addresses where address.isUnicast {
      guard !usable.contains(where: { $0.isIPv6 == address.isIPv6 }) else { continue }
      usable.append(address.withoutZone)
    }
    guard usable != seenAddresses else { return }
    let isNews = usable.contains { !ownAddresses.contains($0) && !seenAddresses.contains($0) }
    seenAddresses = usable
    guard isNews else { return }
    for index in channels.indices { channels[index].postings.restart() }
  }

  /// Something that was found at one of the `postingPlaces`: anything, from anyone who knows the
  /// tag. What it says is true only once its author answers.
  public mutating func found(
    _ announce: [UInt8], in channel: ChannelID, at now: Instant
  ) -> [Output] {
    guard let index = channels.firstIndex(where: { $0.id == channel && !$0.isPassive }) else {
      return []
    }
    guard postedBudget.take(at: now) else {
      counters.unread += 1
      return []
    }
    guard announce.count <= RendezvousRegistration.announceLimit,
      DatagramKind(of: announce) == .announce
    else {
      counters.malformed += 1
      return []
    }
    guard let told = secondHand(announce, channel: index) else { return [] }
    guard channels[index].posted.isNews(told) else {
      counters.replayed += 1
      return []
    }
    counters.told += 1
    contacts.told(
      LinkID(channel: channel, peer: told.author), told.addresses, at: now)
    return tick(at: now)
  }
}
