import MusterBase

/// The members of one channel that were proven live, with their addresses and highest counters.
struct ProvenAuthors: Sendable {
  /// The maximum number of tracked members: twice the peers that a node links to, so that
  /// membership churn causes no extra challenges.
  static let capacity = 2 * Limits.peersPerChannel
  /// The maximum number of former boot ids kept per author. Announcements with these boot ids are
  /// replays.
  static let formerBoots = 4

  /// The evaluation of an announcement by the table of PROTOCOL.md section 5.
  enum Evaluation: Equatable {
    /// Received before, or from a run that has been replaced: to be ignored.
    case replay
    /// New, and from an address that this run has proven: to be accepted.
    case accepted
    /// New, but from an address that is not proven: to be challenged.
    case unproven
  }

  private struct Proof: Sendable {
    let address: Address
    /// The highest counter accepted from the address.
    var counter: UInt64
  }

  private struct Record: Sendable {
    var bootID: UInt64
    /// The proven addresses, most recently heard first; at most `Limits.addresses`.
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

  func contains(_ author: NodeID) -> Bool { records.index(of: author) != nil }

  /// Evaluates an announcement; `hasEcho` means that it carries a valid echo for its source. The
  /// result does not depend on the order in which copies of one announcement arrive.
  func evaluation(
    of author: NodeID, bootID: UInt64, counter: UInt64, at source: Address, hasEcho: Bool
  ) -> Evaluation {
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
