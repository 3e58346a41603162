import MusterBase
import MusterCrypto
import MusterWire

/// An announce to be left where others look for it without any conversation, as in a DHT.
public struct DHTRecord: Equatable, Sendable {
  /// Of the key that the announce is sealed by.
  public let key: KeyID
  /// Where it is left: `ChannelKey.dhtTagBytes`.
  public let tag: [UInt8]
  /// A whole announce datagram, the same as a rendezvous gets.
  public let announcement: [UInt8]
}

/// Where announces of one channel's members are looked for.
public struct DHTKey: Equatable, Sendable {
  public let key: KeyID
  public let tag: [UInt8]
}

/// When a channel's announce is left again: what was left is forgotten after ten minutes.
struct DHTSchedule: Sendable {
  /// Until the second and the third time: the first announce may have reached few nodes of the
  /// DHT, or none.
  private static let eager = [Duration.seconds(20), .seconds(40)]
  /// Twice in the lifetime of a value.
  private static let interval = Duration.seconds(300)
  /// After a failure, and at least between two of them, however often addresses change.
  private static let spacing = Duration.seconds(5)

  private var day: UInt64?
  private var count = 0
  private var postedAt: Instant?
  private var nextAt = Instant.zero

  /// There is news: it is left at once, unless some was a moment ago.
  mutating func restart() {
    count = 0
    nextAt = postedAt.map { $0 + Self.spacing } ?? .zero
  }

  /// The last announce was not taken.
  mutating func failed(at now: Instant) { nextAt = min(nextAt, now + Self.spacing) }

  /// Whether an announce is due; the next one is then scheduled.
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

/// Which announces found in a DHT were news: old ones stay there, and anyone can leave them again.
struct PublishedAnnouncements: Sendable {
  private struct Record: Sendable {
    var bootID: UInt64
    var counter: UInt64
  }

  /// As many authors as `ProvenAuthors` knows.
  static let capacity = ProvenAuthors.capacity
  /// Boots of one author told apart.
  static let bootsPerAuthor = 4
  /// What a full channel has left in ten minutes, 64 members with five announces each and as many
  /// again, then 32 a second.
  static let newBudget = TokenBucket(capacity: 640, perSecond: 32)

  private var records = PeerTable<NodeID, [Record]>()
  /// The authors, the one told of longest ago first.
  private var order: [NodeID] = []

  /// Whether an announce is newer than all others of its boot; it then counts as known.
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
