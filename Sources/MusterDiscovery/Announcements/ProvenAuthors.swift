import MusterBase

/// The members of one channel that proved to be live, with their addresses and highest counters.
struct ProvenAuthors: Sendable {
  /// Twice the peers that a node links to, so that membership churn causes no extra challenges.
  static let capacity = 2 * Limits.peersPerChannel
  /// Earlier boots of one author, whose announcements are known to be replays.
  static let formerBoots = 4

  enum Standing: Equatable {
    /// Seen before, or from a boot that has been replaced: ignored.
    case stale
    /// New, and from an address that the boot has proven: accepted.
    case proven
    /// New, but from an address that is not proven: to be challenged.
    case unproven
  }

  private struct Record: Sendable {
    var bootID: UInt64
    var highestCounter: UInt64
    /// Most recently seen first; `Limits.addresses` at most.
    var addresses: [Address]
    var formerBoots: [UInt64] = []
    var heardAt: Instant
  }

  private var records = PeerTable<NodeID, Record>()

  var count: Int { records.count }

  func standing(
    of author: NodeID, bootID: UInt64, counter: UInt64, at source: Address
  ) -> Standing {
    guard let record = records[author] else { return .unproven }
    if record.bootID != bootID {
      return record.formerBoots.contains(bootID) ? .stale : .unproven
    }
    guard counter > record.highestCounter else { return .stale }
    return record.addresses.contains(source) ? .proven : .unproven
  }

  /// Records a proof: an echo, or a higher counter from a proven address.
  mutating func record(
    _ author: NodeID, bootID: UInt64, counter: UInt64, at source: Address, now: Instant
  ) {
    guard let index = records.index(of: author) else {
      if records.count >= Self.capacity { forgetLongestUnheard() }
      records[author] = Record(
        bootID: bootID, highestCounter: counter, addresses: [source], heardAt: now)
      return
    }
    if records[at: index].bootID == bootID {
      Self.refresh(&records[at: index], counter: counter, source: source)
    } else {
      Self.replace(&records[at: index], bootID: bootID, counter: counter, source: source)
    }
    records[at: index].heardAt = now
  }

  private static func refresh(_ record: inout Record, counter: UInt64, source: Address) {
    record.highestCounter = max(record.highestCounter, counter)
    record.addresses.removeAll { $0 == source }
    record.addresses.insert(source, at: 0)
    if record.addresses.count > Limits.addresses { record.addresses.removeLast() }
  }

  private static func replace(
    _ record: inout Record, bootID: UInt64, counter: UInt64, source: Address
  ) {
    record.formerBoots.append(record.bootID)
    if record.formerBoots.count > Self.formerBoots { record.formerBoots.removeFirst() }
    record.bootID = bootID
    record.highestCounter = counter
    record.addresses = [source]
  }

  private mutating func forgetLongestUnheard() {
    let oldest = records.min { $0.value.heardAt < $1.value.heardAt }
    if let oldest { records[oldest.key] = nil }
  }
}
