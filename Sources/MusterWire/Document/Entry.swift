import MusterBase

/// What one member says to a channel: a piece of the channel document, before its signature.
///
/// Layout: author 32, sequence 8, Lamport counter 8, kind 1, body. A signature of 64 bytes follows.
public struct Entry: Equatable, Sendable {
  public var author: NodeID
  /// Never the same for two entries of one author. Its upper half is drawn at random by every
  /// process, so that one that forgot what it said before says nothing under an old number.
  public var sequence: UInt64
  /// More than that of every entry that the author knew (Lamport, CACM 1978): orders by cause.
  public var lamport: UInt64
  public var body: EntryBody

  public static let signatureBytes = 64
  /// A higher counter is refused, so that it can always be counted on.
  public static let lamportLimit: UInt64 = 1 << 62

  public init(author: NodeID, sequence: UInt64, lamport: UInt64, body: EntryBody) {
    self.author = author
    self.sequence = sequence
    self.lamport = lamport
    self.body = body
  }

  /// The bytes that the author signs.
  public func encoded() -> [UInt8] {
    var writer = Writer(capacity: 256)
    writer.append(author.key)
    writer.u64(sequence)
    writer.u64(lamport)
    body.write(to: &writer)
    return writer.bytes
  }

  public init(decoding bytes: some Collection<UInt8>) throws(WireError) {
    var reader = Reader(Array(bytes))
    author = NodeID(try reader.bytes32())
    sequence = try reader.u64()
    lamport = try reader.u64()
    guard lamport <= Self.lamportLimit else { throw .invalidValue }
    body = try EntryBody(reading: &reader)
  }
}

/// What an entry is about; a kind that this version does not know is kept and passed on as it is.
public enum EntryBody: Equatable, Sendable {
  case presence(Presence)
  case neighbourReport(NeighbourReport)
  case claim(CallClaim)
  case end(CallEnd)
  case message(Message)
  case grant(Grant)
  case redemption(Redemption)
  case epoch(EpochChange)
  case unknown(kind: UInt8, [UInt8])

  /// The first byte of an encoded body.
  public enum Kind: UInt8, Sendable, CaseIterable {
    case presence = 1
    case neighbourReport = 2
    case claim = 3
    case end = 4
    case message = 5
    case grant = 6
    case redemption = 7
    case epoch = 8
  }

  /// Nil for a kind that this version does not know.
  public var kind: Kind? {
    switch self {
    case .presence: .presence
    case .neighbourReport: .neighbourReport
    case .claim: .claim
    case .end: .end
    case .message: .message
    case .grant: .grant
    case .redemption: .redemption
    case .epoch: .epoch
    case .unknown: nil
    }
  }

  func write(to writer: inout Writer) {
    if case .unknown(let kind, let bytes) = self {
      writer.u8(kind)
      writer.append(bytes)
      return
    }
    if let kind { writer.u8(kind.rawValue) }
    switch self {
    case .presence(let body): body.write(to: &writer)
    case .neighbourReport(let body): body.write(to: &writer)
    case .claim(let body): body.write(to: &writer)
    case .end(let body): body.write(to: &writer)
    case .message(let body): body.write(to: &writer)
    case .grant(let body): body.write(to: &writer)
    case .redemption(let body): body.write(to: &writer)
    case .epoch(let body): body.write(to: &writer)
    case .unknown: break
    }
  }

  /// Later versions may append fields to a body; the signature covers them, this one skips them.
  init(reading reader: inout Reader) throws(WireError) {
    let byte = try reader.u8()
    guard let kind = Kind(rawValue: byte) else {
      self = .unknown(kind: byte, Array(reader.rest()))
      return
    }
    switch kind {
    case .presence: self = .presence(try Presence(reading: &reader))
    case .neighbourReport: self = .neighbourReport(try NeighbourReport(reading: &reader))
    case .claim: self = .claim(try CallClaim(reading: &reader))
    case .end: self = .end(try CallEnd(reading: &reader))
    case .message: self = .message(try Message(reading: &reader))
    case .grant: self = .grant(try Grant(reading: &reader))
    case .redemption: self = .redemption(try Redemption(reading: &reader))
    case .epoch: self = .epoch(try EpochChange(reading: &reader))
    }
  }
}
