import MusterBase

/// The packets of one stream that are missing, and when to ask for each of them (again).
public struct NackList: Equatable, Sendable {
  /// Tries per packet (libwebrtc `nack_requester.cc`).
  static let maximumTries = 10
  /// A packet counts as late, not lost, until this many later ones are here or this time has
  /// passed.
  static let reorderedPackets: Int64 = 2
  static let reorderedTime = Duration.milliseconds(5)
  /// Between two tries: a round trip and a fifth, but never less than libwebrtc's scan interval.
  static let minimumInterval = Duration.milliseconds(20)

  private struct Entry: Equatable, Sendable {
    var sequence: Int64
    var noticedAt: Instant
    var askAt: Instant
    var tries = 0
  }

  /// By sequence, ascending; at most `Limits.nackEntries`.
  private var entries: [Entry] = []

  public init() {}

  public var isEmpty: Bool { entries.isEmpty }
  public var count: Int { entries.count }

  /// When the oldest packet that is still missing was first missed.
  public var oldestNoticedAt: Instant? { entries.first?.noticedAt }

  /// How long the answer to a request may take before it is repeated.
  public static func interval(roundTrip: Duration) -> Duration {
    max(roundTrip * 6 / 5, minimumInterval)
  }

  /// Takes note of packets skipped over, all above those noted before; false, and everything
  /// forgotten, when there are too many to repair.
  public mutating func notice(_ missing: Range<Int64>, at now: Instant) -> Bool {
    guard missing.count <= Limits.nackEntries - entries.count else {
      entries.removeAll()
      return false
    }
    for sequence in missing {
      entries.append(
        Entry(sequence: sequence, noticedAt: now, askAt: now + Self.reorderedTime))
    }
    return true
  }

  /// Strikes a packet off the list; true when it had been asked for.
  public mutating func received(_ sequence: Int64) -> Bool {
    guard let index = entries.firstIndex(where: { $0.sequence >= sequence }),
      entries[index].sequence == sequence
    else { return false }
    return entries.remove(at: index).tries > 0
  }

  public mutating func drop(below sequence: Int64) {
    let count = entries.firstIndex { $0.sequence >= sequence } ?? entries.count
    if count > 0 { entries.removeFirst(count) }
  }

  public mutating func removeAll() { entries.removeAll() }

  /// What to ask for now, and whether a packet was given up after its last try.
  public mutating func due(
    highest: Int64, roundTrip: Duration, at now: Instant
  ) -> (sequences: [UInt16], gaveUp: Bool) {
    var sequences: [UInt16] = []
    var gaveUp = false
    for index in entries.indices {
      let isOvertaken =
        entries[index].tries == 0 && highest - entries[index].sequence >= Self.reorderedPackets
      guard isOvertaken || entries[index].askAt <= now else { continue }
      entries[index].askAt = now + Self.interval(roundTrip: roundTrip)
      entries[index].tries += 1
      if entries[index].tries > Self.maximumTries {
        gaveUp = true
      } else {
        sequences.append(UInt16(truncatingIfNeeded: entries[index].sequence))
      }
    }
    if gaveUp { entries.removeAll { $0.tries > Self.maximumTries } }
    return (sequences, gaveUp)
  }

  public var deadline: Instant? { entries.map(\.askAt).min() }
}
