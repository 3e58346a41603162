import MusterBase
import MusterCrypto
import MusterWire

/// Finding members by announces that are left somewhere, as in a DHT, rather than told.
extension Discovery {
  /// Where others' announces are looked for: under the tags of `day` (since 1970) and of the days
  /// around it, so that a clock that is wrong by hours keeps nobody apart.
  public func dhtKeys(day: UInt64) -> [DHTKey] {
    channels.filter { !$0.isPassive }.flatMap { channel in
      [day &- 1, day, day &+ 1].map {
        DHTKey(key: channel.id, tag: channel.key.dhtTag(day: $0))
      }
    }
  }

  /// The announces that are to be left now, each under its channel's tag of `day`. A host that has
  /// nowhere to leave them never asks.
  public mutating func takeDHTRecords(day: UInt64, at now: Instant) -> [DHTRecord] {
    var dhtRecords: [DHTRecord] = []
    for index in channels.indices where !channels[index].isPassive {
      guard channels[index].dhtRecords.takeDue(day: day, at: now, jitter: &jitter) else { continue }
      let outside = seenAddresses + rendezvous.outside + seenByNeighbours
      dhtRecords.append(
        DHTRecord(
          key: channels[index].id, tag: channels[index].key.dhtTag(day: day),
          announcement: nextAnnouncement(in: index, reachable(outside), at: now)))
    }
    return dhtRecords
  }

  /// A posting of this channel was not taken; it is due again soon.
  public mutating func dhtRecordFailed(_ key: KeyID, at now: Instant) {
    for index in channels.indices where channels[index].id == key {
      channels[index].dhtRecords.failed(at: now)
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
    for index in channels.indices { channels[index].dhtRecords.restart() }
  }

  /// Something that was found at one of the `dhtKeys`: anything, from anyone who knows the
  /// tag. What it says is true only once its author answers.
  public mutating func found(
    _ announcement: [UInt8], in key: KeyID, at now: Instant
  ) -> [Output] {
    guard let index = channels.firstIndex(where: { $0.id == key && !$0.isPassive }) else {
      return []
    }
    guard postedBudget.take(at: now) else {
      counters.unread += 1
      return []
    }
    guard announcement.count <= RendezvousRegistration.announcementLimit,
      DatagramKind(of: announcement) == .announcement
    else {
      counters.malformed += 1
      return []
    }
    guard let learned = secondHand(announcement, channel: index) else { return [] }
    guard channels[index].published.isNews(learned) else {
      counters.replayed += 1
      return []
    }
    counters.learned += 1
    candidateProber.learned(
      SessionLinkID(key: key, peer: learned.author), learned.addresses, at: now)
    return tick(at: now)
  }
}
