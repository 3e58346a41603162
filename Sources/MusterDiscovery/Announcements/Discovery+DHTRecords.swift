import MusterBase
import MusterCrypto
import MusterWire

/// Discovery through a DHT, in which members store their announcements.
extension Discovery {
  /// The DHT keys to look up: those of `day` (in UTC, counted from 1970-01-01) and of the adjacent
  /// days, so that members whose clocks differ by hours still find each other.
  public func dhtKeys(day: UInt64) -> [DHTKey] {
    channels.filter { !$0.isPassive }.flatMap { channel in
      [day &- 1, day, day &+ 1].map {
        DHTKey(key: channel.id, tag: channel.key.dhtTag(day: $0))
      }
    }
  }

  /// Takes the records that are due to be stored, each under its channel's key of `day`. A host
  /// without a DHT never calls this.
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

  /// Handles the failure to store a record of this channel; the record becomes due again after 5 s.
  public mutating func dhtRecordFailed(_ key: KeyID, at now: Instant) {
    for index in channels.indices where channels[index].id == key {
      channels[index].dhtRecords.failed(at: now)
    }
  }

  /// Sets this node's addresses as observed by the DHT's nodes, at most one per family; these
  /// addresses are announced through the DHT only.
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

  /// Handles a value found under one of the `dhtKeys`. Anyone who knows the DHT key can store a
  /// value, so its content is trusted only once its author has answered a challenge.
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
