import MusterBase

/// The missing packets of one stream, each with the time of its next NACK.
public struct NackList: Equatable, Sendable {
  /// The maximum number of requests per packet: for ten retransmissions, as in libwebrtc's
  /// `nack_requester.cc`.
  static let maximumTries = 20
  /// The number of later packets, and the time, after which a missing packet counts as lost rather
  /// than reordered.
  static let reorderedPackets: Int64 = 2
  public static let reorderedTime = Duration.milliseconds(5)
  /// The minimum interval between requests, from libwebrtc.
  static let minimumInterval = Duration.milliseconds(20)

  private struct Entry: Equatable, Sendable {
    var sequence: Int64
    var noticedAt: Instant
    /// The time of the next request; nil after the last one.
    var askAt: Instant?
    var tries = 0
    /// Whether the packet has arrived, or a copy of it in a later one.
    var isFilled = false
  }

  /// The entries in order of sequence; at most `Limits.nackEntries`.
  private var entries: [Entry] = []

  /// Creates an empty list.
  public init() {}

  /// True if no packets are missing.
  public var isEmpty: Bool { entries.isEmpty }
  /// The number of missing packets.
  public var count: Int { entries.count }

  /// The time at which the oldest missing packet was first noticed; nil if none is missing.
  public var oldestNoticedAt: Instant? { entries.first?.noticedAt }

  /// The time to wait for a retransmission before requesting another one.
  public static func interval(roundTrip: Duration) -> Duration {
    max(roundTrip * 6 / 5, minimumInterval)
  }

  /// The time after which a request is repeated, since it may have been lost itself: half of that.
  /// Of requests within a round trip a sender answers the first one that arrives.
  private static func repetition(roundTrip: Duration) -> Duration {
    max(interval(roundTrip: roundTrip) / 2, minimumInterval)
  }

  /// The time of the next request for a packet that was requested now, in steps of a quarter of the
  /// time until then: requests for several packets then share messages, which would fill a narrow
  /// path otherwise.
  private static func nextRequest(roundTrip: Duration, after now: Instant) -> Instant {
    let repetition = repetition(roundTrip: roundTrip)
    let step = (repetition / 4).wholeNanoseconds
    let next = (now + repetition).nanoseconds
    return Instant(nanoseconds: (next + step / 2) / step * step)
  }

  /// Adds skipped sequence numbers, which must be above all numbers added before. If the list would
  /// exceed `Limits.nackEntries`, clears it and returns false; a keyframe is then required. The
  /// first request is made after `wait`.
  public mutating func notice(
    _ missing: Range<Int64>, wait: Duration = reorderedTime, at now: Instant
  ) -> Bool {
    guard missing.count <= Limits.nackEntries - entries.count else {
      entries.removeAll()
      return false
    }
    for sequence in missing {
      entries.append(
        Entry(sequence: sequence, noticedAt: now, askAt: now + wait))
    }
    return true
  }

  /// Removes a packet that has arrived; true if the packet had been requested by a NACK.
  public mutating func received(_ sequence: Int64) -> Bool {
    index(of: sequence).map { entries.remove(at: $0).tries > 0 } ?? false
  }

  /// Keeps a packet that has arrived, or a copy of it in a later one, without requesting it any
  /// more; false if it is not missing.
  public mutating func fill(_ sequence: Int64) -> Bool {
    guard let index = index(of: sequence), !entries[index].isFilled else { return false }
    (entries[index].isFilled, entries[index].askAt) = (true, nil)
    return true
  }

  /// Whether a packet of the list has been requested.
  public func isRequested(_ sequence: Int64) -> Bool {
    index(of: sequence).map { entries[$0].tries > 0 } ?? false
  }

  private func index(of sequence: Int64) -> Int? {
    guard let index = entries.firstIndex(where: { $0.sequence >= sequence }) else { return nil }
    return entries[index].sequence == sequence ? index : nil
  }

  /// Removes the packets below `sequence`, which are no longer needed.
  public mutating func drop(below sequence: Int64) {
    let count = entries.firstIndex { $0.sequence >= sequence } ?? entries.count
    if count > 0 { entries.removeFirst(count) }
  }

  /// Removes the packets that have been missing since before `instant`.
  public mutating func drop(noticedBefore instant: Instant) {
    let count = entries.firstIndex { $0.noticedAt >= instant } ?? entries.count
    if count > 0 { entries.removeFirst(count) }
  }

  /// Clears the list.
  public mutating func removeAll() { entries.removeAll() }

  /// Returns the sequence numbers to request now, and whether a packet was abandoned after its last
  /// request. With `patience`, a packet is not requested if it would arrive later than that after
  /// it was first noticed.
  public mutating func due(
    highest: Int64, roundTrip: Duration, patience: Duration? = nil, at now: Instant
  ) -> (sequences: [UInt16], gaveUp: Bool) {
    var sequences: [UInt16] = []
    var gaveUp = false
    for index in entries.indices {
      let isOvertaken =
        entries[index].tries == 0 && highest - entries[index].sequence >= Self.reorderedPackets
      guard let askAt = entries[index].askAt, isOvertaken || askAt <= now else { continue }
      if let patience, now + roundTrip - entries[index].noticedAt > patience {
        entries[index].askAt = nil
        continue
      }
      entries[index].askAt = Self.nextRequest(roundTrip: roundTrip, after: now)
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

  /// The time at which the next request is due; nil if there is none.
  public var deadline: Instant? { entries.lazy.compactMap(\.askAt).min() }
}
