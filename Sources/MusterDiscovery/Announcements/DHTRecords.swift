import MusterBase
import MusterCrypto
import MusterWire

/// An announcement to be stored in a DHT, where peers look it up without contacting this node.
public struct DHTRecord: Equatable, Sendable {
  /// The id of the key that encrypts the announcement.
  public let key: KeyID
  /// The DHT key of the record, 20 bytes (`ChannelKey.dhtTagBytes`).
  public let tag: [UInt8]
  /// The complete announcement datagram, the same as for a rendezvous server.
  public let announcement: [UInt8]
}

/// A DHT key to be looked up.
public struct DHTKey: Equatable, Sendable {
  /// The id of the channel key that the DHT key is derived from.
  public let key: KeyID
  /// The DHT key, 20 bytes (`ChannelKey.dhtTagBytes`).
  public let tag: [UInt8]
}

/// The schedule for storing a channel's record, which is stored again regularly because DHT nodes
/// drop values after ten minutes.
struct DHTSchedule: Sendable {
  /// The intervals before the second and the third put, shorter than `interval` because the first
  /// put may have reached few DHT nodes or none.
  private static let eager = [Duration.seconds(20), .seconds(40)]
  /// The regular interval: two puts in the lifetime of a value.
  private static let interval = Duration.seconds(300)
  /// The retry interval after a failure, and the minimum interval between two puts, however often
  /// addresses change.
  private static let spacing = Duration.seconds(5)

  private var day: UInt64?
  private var count = 0
  private var postedAt: Instant?
  private var nextAt = Instant.zero

  /// Restarts the schedule after a change of the record, which is stored at once, or `spacing`
  /// after the previous put.
  mutating func restart() {
    count = 0
    nextAt = postedAt.map { $0 + Self.spacing } ?? .zero
  }

  /// Schedules a retry after a failed put.
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

/// Filters announcements found in a DHT, where old values persist and anyone can store such a value
/// again.
struct PublishedAnnouncements: Sendable {
  private struct Record: Sendable {
    var bootID: UInt64
    var counter: UInt64
  }

  /// The maximum number of tracked authors, the same as in `ProvenAuthors`.
  static let capacity = ProvenAuthors.capacity
  /// The maximum number of tracked runs of one author.
  static let bootsPerAuthor = 4
  /// The rate limit for new announcements: a burst of 640, twice the records of a full channel (64
  /// members with five announcements each in ten minutes), then 32 per second.
  static let newBudget = TokenBucket(capacity: 640, perSecond: 32)

  private var records = PeerTable<NodeID, [Record]>()
  /// The authors, least recently reported first.
  private var order: [NodeID] = []

  /// Whether an announcement is newer than all earlier announcements of the same run; also records
  /// it.
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
