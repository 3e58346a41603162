import MusterBase

/// One statement of a member in the channel document, before it is signed.
///
/// Layout in bytes: author 32, sequence 8, Lamport counter 8, kind 1, body. A signature of 64 bytes
/// follows.
public struct Entry: Equatable, Sendable {
  /// The member that signs the entry.
  public var author: NodeID
  /// The number that identifies the entry among its author's entries. The upper half is random,
  /// drawn at every start of the process, so that a node that lost its state does not reuse a
  /// number by accident, which would be equivocation.
  public var sequence: UInt64
  /// One more than the highest counter that the author had seen (Lamport, CACM 21(7), 1978), so
  /// that an effect sorts after its cause.
  public var lamport: UInt64
  /// The content of the entry.
  public var body: EntryBody

  /// The length of the Ed25519 signature in bytes.
  public static let signatureBytes = 64
  /// The highest Lamport counter accepted; without a limit, one member could exhaust the counter
  /// for all members.
  public static let lamportLimit: UInt64 = 1 << 62

  /// Describes an unsigned entry; `lamport` is at most `lamportLimit`.
  public init(author: NodeID, sequence: UInt64, lamport: UInt64, body: EntryBody) {
    self.author = author
    self.sequence = sequence
    self.lamport = lamport
    self.body = body
  }

  /// The bytes that the author signs; the signature follows these bytes.
  public func encoded() -> [UInt8] {
    var writer = Writer(capacity: 256)
    writer.append(author.key)
    writer.u64(sequence)
    writer.u64(lamport)
    body.write(to: &writer)
    return writer.bytes
  }

  /// Decodes an entry; throws for truncated input, a counter above the limit and a malformed body
  /// of a known kind.
  public init(decoding bytes: some Collection<UInt8>) throws(WireError) {
    var reader = Reader(Array(bytes))
    author = NodeID(try reader.bytes32())
    sequence = try reader.u64()
    lamport = try reader.u64()
    guard lamport <= Self.lamportLimit else { throw .invalidValue }
    body = try EntryBody(reading: &reader)
  }
}

/// The content of an entry. Kinds unknown to this version are kept and forwarded unchanged.
public enum EntryBody: Equatable, Sendable {
  /// A member's current state.
  case presence(Presence)
  /// The members that the author has a working link to (a link-state advertisement).
  case neighbourReport(NeighbourReport)
  /// A call's initiator and term.
  case claim(CallClaim)
  /// The end of a call.
  case end(CallEnd)
  /// The author's presence in a call together with others.
  case joining(CallJoining)
  /// The muting of a member in a call, or its removal from the call.
  case moderation(Moderation)
  /// A text message.
  case message(Message)
  /// A role, granted by an owner.
  case grant(Grant)
  /// The use of an invite.
  case redemption(Redemption)
  /// A change of the channel key, and the members that this change removes.
  case epoch(EpochChange)
  /// The encoded body of a kind that this version does not know.
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
    case joining = 9
    case moderation = 10
  }

  /// The kind of the body; nil for a kind that this version does not know.
  public var kind: Kind? {
    switch self {
    case .presence: .presence
    case .neighbourReport: .neighbourReport
    case .claim: .claim
    case .end: .end
    case .joining: .joining
    case .moderation: .moderation
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
    case .joining(let body): body.write(to: &writer)
    case .moderation(let body): body.write(to: &writer)
    case .message(let body): body.write(to: &writer)
    case .grant(let body): body.write(to: &writer)
    case .redemption(let body): body.write(to: &writer)
    case .epoch(let body): body.write(to: &writer)
    case .unknown: break
    }
  }

  /// Decodes a body. Later versions may append fields, which this version skips but the signature
  /// covers.
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
    case .joining: self = .joining(try CallJoining(reading: &reader))
    case .moderation: self = .moderation(try Moderation(reading: &reader))
    case .message: self = .message(try Message(reading: &reader))
    case .grant: self = .grant(try Grant(reading: &reader))
    case .redemption: self = .redemption(try Redemption(reading: &reader))
    case .epoch: self = .epoch(try EpochChange(reading: &reader))
    }
  }
}
