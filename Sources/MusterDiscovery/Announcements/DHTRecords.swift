import MusterBase
import MusterCrypto
import MusterWire

/// An announcement to be stored in a DHT, where others look it up without contacting this node.
public struct DHTRecord: Equatable, Sendable {
  /// Id of the key that seals the announcement.
  public let key: KeyID
  /// The DHT key to store it under: `ChannelKey.dhtTagBytes`.
  public let tag: [UInt8]
  /// A whole announcement datagram, the same as for a rendezvous.
  public let announcement: [UInt8]
}

/// A DHT key to be looked up.
public struct DHTKey: Equatable, Sendable {
  /// Id of the channel key that the DHT key is derived from.
  public let key: KeyID
  /// The DHT key: `ChannelKey.dhtTagBytes`.
  public let tag: [UInt8]
}

/// When a channel's record is stored again: DHT nodes drop values after ten minutes.
struct DHTSchedule: Sendable {
  /// Until the second and the third time: the first put may have reached few DHT nodes, or none.
  private static let eager = [Duration.seconds(20), .seconds(40)]
  /// Twice in the lifetime of a value.
  private static let interval = Duration.seconds(300)
  /// The retry interval after a failure, and the minimum time between two puts, however often
  /// addresses change.
  private static let spacing = Duration.seconds(5)

  private var day: UInt64?
  private var count = 0
  private var postedAt: Instant?
  private var nextAt = Instant.zero

  /// The record has changed: it is stored at once, or `spacing` after the previous one.
  mutating func restart() {
    count = 0
    nextAt = postedAt.map { $0 + Self.spacing } ?? .zero
  }

  /// The last put failed.
  mutating func failed(at now: Instant) { nextAt = min(nextAt, now + Self.spacing) }

  /// Whether a put is due; schedules the next one.
  mutating func takeDue(day today: UInt64, at now: Instant, jitter: inout PRNG) -> Bool {
    if today != day {
      day = today
      restart()
    }
    guard nextAt <= now else { return false }
    let wait = count < Self.eager.count ? Self.eager[count] : Self.interval
    nextAt = now + jitter.jittered(wait, by: Backoff.jitter)
    postedAt = now
    count = min(count + 1, Self.eager.count)
    return true
  }
}

/// Filters announcements found in a DHT for news: old values stay there, and anyone can store them
/// again.
struct PublishedAnnouncements: Sendable {
  private struct Record: Sendable {
    var bootID: UInt64
    var counter: UInt64
  }

  /// The number of authors that `ProvenAuthors` tracks.
  static let capacity = ProvenAuthors.capacity
  /// Boots of one author that are tracked.
  static let bootsPerAuthor = 4
  /// The records of a full channel in ten minutes, 64 members with five announcements each and as
  /// many again, then 32 per second.
  static let newBudget = TokenBucket(capacity: 640, perSecond: 32)

  private var records = PeerTable<NodeID, [Record]>()
  /// The authors, least recently reported first.
  private var order: [NodeID] = []

  /// Whether an announcement is newer than all earlier ones of its boot; also records it.
  mutating func isNews(_ announcement: Announcement) -> Bool {
    var boots = records[announcement.author] ?? []
    let known = boots.firstIndex { $0.bootID == announcement.bootID }
    if let known {
      guard announcement.counter > boots[known].counter else { return false }
      boots.remove(at: known)
    }
    boots.append(Record(bootID: announcement.bootID, counter: announcement.counter))
    if boots.count > Self.bootsPerAuthor { boots.removeFirst() }
    if let index = order.firstIndex(of: announcement.author) {
      order.remove(at: index)
    } else if order.count >= Self.capacity {
      records[order.removeFirst()] = nil
    }
    order.append(announcement.author)
    records[announcement.author] = boots
    return true
  }
}
