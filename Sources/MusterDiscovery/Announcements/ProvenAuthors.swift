import MusterBase

/// The members of one channel that proved to be live, with their addresses and highest counters.
struct ProvenAuthors: Sendable {
  /// Twice the peers that a node links to, so that membership churn causes no extra challenges.
  static let capacity = 2 * Limits.peersPerChannel
  /// Earlier boots of one author, whose announcements are known to be replays.
  static let formerBoots = 4

  /// The evaluation of an announcement by the table of PROTOCOL.md section 5.
  enum Standing: Equatable {
    /// Seen before, or from a boot that has been replaced: ignored.
    case replay
    /// New, and from an address that the boot has proven: accepted.
    case accepted
    /// New, but from an address that is not proven: to be challenged.
    case unproven
  }

  private struct Proof: Sendable {
    let address: Address
    /// The highest counter accepted from there.
    var counter: UInt64
  }

  private struct Record: Sendable {
    var bootID: UInt64
    /// The most recently heard first; `Limits.addresses` at most.
    var proofs: [Proof]
    var formerBoots: [UInt64] = []
    var heardAt: Instant
    var highestCounter: UInt64

    func counter(at address: Address) -> UInt64? {
      proofs.first { $0.address == address }?.counter
    }
  }

  private var records = PeerTable<NodeID, Record>()

  var count: Int { records.count }

  /// `hasEcho`: the announcement carries a valid echo for its source. The order in which copies of
  /// one announcement arrive does not decide which addresses are found.
  func standing(
    of author: NodeID, bootID: UInt64, counter: UInt64, at source: Address, hasEcho: Bool
  ) -> Standing {
    guard let record = records[author], record.bootID == bootID else {
      let isReplaced = records[author]?.formerBoots.contains(bootID) ?? false
      if isReplaced { return .replay }
      return hasEcho ? .accepted : .unproven
    }
    guard let last = record.counter(at: source) else {
      if hasEcho { return .accepted }
      return counter > record.highestCounter ? .unproven : .replay
    }
    let isNew = counter > last && (hasEcho || counter >= record.highestCounter)
    return isNew ? .accepted : .replay
  }

  /// Records a proof: an echo, or a higher counter from a proven address.
  mutating func record(
    _ author: NodeID, bootID: UInt64, counter: UInt64, at source: Address, now: Instant
  ) {
    guard let index = records.index(of: author) else {
      if records.count >= Self.capacity { forgetLongestUnheard() }
      records[author] = Record(
        bootID: bootID, proofs: [Proof(address: source, counter: counter)], heardAt: now,
        highestCounter: counter)
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
    let last = max(record.counter(at: source) ?? counter, counter)
    record.proofs.removeAll { $0.address == source }
    record.proofs.insert(Proof(address: source, counter: last), at: 0)
    if record.proofs.count > Limits.addresses { record.proofs.removeLast() }
  }

  private static func replace(
    _ record: inout Record, bootID: UInt64, counter: UInt64, source: Address
  ) {
    record.formerBoots.append(record.bootID)
    if record.formerBoots.count > Self.formerBoots { record.formerBoots.removeFirst() }
    record.bootID = bootID
    record.highestCounter = counter
    record.proofs = [Proof(address: source, counter: counter)]
  }

  private mutating func forgetLongestUnheard() {
    let oldest = records.min { $0.value.heardAt < $1.value.heardAt }
    if let oldest { records[oldest.key] = nil }
  }
}
