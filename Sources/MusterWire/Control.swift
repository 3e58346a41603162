import MusterBase

/// A control message between the two nodes of a link. Layout in bytes: type 1, length 2, value.
///
/// The high bit of the type marks a message as critical: a receiver that does not know the type
/// must ignore the whole payload. Unknown messages without the bit are skipped.
public enum Control: Equatable, Sendable {
  /// A signed entry of the channel document.
  case entry([UInt8])
  /// Acknowledges entries, by the first 8 bytes of their ids.
  case entriesReceived([UInt64])
  /// Requests one of the receiver's video streams, up to a size and a frame rate.
  case subscribe(Subscription)
  /// A liveness probe; the receiver answers with `pong` and the same token.
  case ping(UInt64)
  /// The answer to a `ping`.
  case pong(UInt64)
  /// The digest of the sender's document; a receiver with a different digest answers with `ranges`.
  case digest(DocumentDigest)
  /// Ranges of the sender's document in which the two documents may differ.
  case ranges([RangeSummary])
  /// Requests entries, by the first 8 bytes of their ids.
  case want([UInt64])
  /// Requests an indirect probe (SWIM): the receiver pings the given node and reports the result.
  case probe(NodeID, token: UInt64)
  /// The result of an indirect probe.
  case probed(NodeID, token: UInt64, answered: Bool)
  /// The secret channel key of an epoch (32 bytes), and the owner's signed entry with the key's id.
  case epochKey([UInt8], entry: [UInt8])
  /// The sender does not accept the receiver as a member.
  case refused(Refusal)
  /// The receiver's address as observed by the sender (server-reflexive).
  case seen(Address)
  /// Addresses at which the sender accepts datagrams directly, best first.
  case candidates([Address])
  /// The layer that the sender sends of one of its video streams, and the reason.
  case sentLayer(SentLayer)

  private enum Kind: UInt8 {
    case entry = 1
    case entriesReceived = 2
    case subscribe = 3
    case ping = 4
    case pong = 5
    case digest = 6
    case ranges = 7
    case want = 8
    case probe = 9
    case probed = 10
    case epochKey = 11
    case refused = 12
    case seen = 13
    case candidates = 14
    case sentLayer = 15
  }

  static let criticalBit: UInt8 = 0x80
  /// The maximum number of entry ids in one message.
  public static let idLimit = 64
  /// The maximum number of ranges in one message: 40 fingerprints of 26 bytes fit into a datagram.
  public static let rangeLimit = 40

  /// Encodes `messages` as one payload.
  public static func encode(_ messages: [Control]) -> [UInt8] {
    var writer = Writer(capacity: 256)
    writer.u8(PayloadKind.controlByte)
    for message in messages {
      let (kind, value) = message.body
      writer.u8(kind.rawValue)
      writer.u16(UInt16(value.count))
      writer.append(value)
    }
    return writer.bytes
  }

  private var body: (Kind, [UInt8]) {
    var writer = Writer(capacity: 40)
    switch self {
    case .entry(let bytes): return (.entry, bytes)
    case .entriesReceived(let ids):
      writer.ids(ids)
      return (.entriesReceived, writer.bytes)
    case .subscribe(let subscription):
      subscription.write(to: &writer)
      return (.subscribe, writer.bytes)
    case .ping(let token):
      writer.u64(token)
      return (.ping, writer.bytes)
    case .pong(let token):
      writer.u64(token)
      return (.pong, writer.bytes)
    case .digest(let digest):
      digest.write(to: &writer)
      return (.digest, writer.bytes)
    case .ranges(let ranges):
      precondition(ranges.count <= Self.rangeLimit)
      for range in ranges { range.write(to: &writer) }
      return (.ranges, writer.bytes)
    case .want(let ids):
      writer.ids(ids)
      return (.want, writer.bytes)
    case .probe(let target, let token):
      writer.append(target.key)
      writer.u64(token)
      return (.probe, writer.bytes)
    case .probed(let target, let token, let answered):
      writer.append(target.key)
      writer.u64(token)
      writer.u8(answered ? 1 : 0)
      return (.probed, writer.bytes)
    case .epochKey(let secret, let entry):
      precondition(secret.count == 32)
      writer.append(secret)
      writer.append(entry)
      return (.epochKey, writer.bytes)
    case .refused(let reason):
      writer.u8(reason.rawValue)
      return (.refused, writer.bytes)
    case .seen(let address):
      writer.address(address)
      return (.seen, writer.bytes)
    case .candidates(let addresses):
      precondition(addresses.count <= Limits.addresses)
      for address in addresses { writer.address(address) }
      return (.candidates, writer.bytes)
    case .sentLayer(let sent):
      sent.write(to: &writer)
      return (.sentLayer, writer.bytes)
    }
  }

  /// Decodes the messages of a payload. Unknown messages are skipped; an unknown critical message
  /// throws `unsupported`.
  public static func decode(_ payload: [UInt8]) throws(WireError) -> [Control] {
    var reader = Reader(payload)
    guard try reader.u8() == PayloadKind.controlByte else { throw .invalidValue }
    var messages: [Control] = []
    while !reader.isAtEnd {
      let type = try reader.u8()
      let value = try reader.slice(Int(try reader.u16()))
      guard let kind = Kind(rawValue: type) else {
        if type & criticalBit != 0 { throw .unsupported }
        continue
      }
      if let message = try message(kind, value) { messages.append(message) }
    }
    return messages
  }

  /// Decodes one message; nil for one about a stream that this version does not
  /// support.
  private static func message(
    _ kind: Kind, _ value: ArraySlice<UInt8>
  ) throws(WireError) -> Control? {
    var body = Reader(value)
    let message: Control?
    switch kind {
    case .entry: message = .entry(Array(body.rest()))
    case .entriesReceived: message = .entriesReceived(try body.ids())
    case .subscribe: message = try Subscription.read(from: &body).map { .subscribe($0) }
    case .ping: message = .ping(try body.u64())
    case .pong: message = .pong(try body.u64())
    case .digest: message = .digest(try DocumentDigest(reading: &body))
    case .ranges:
      var ranges: [RangeSummary] = []
      while !body.isAtEnd {
        guard ranges.count < rangeLimit else { throw .tooLong }
        ranges.append(try RangeSummary(reading: &body))
      }
      message = .ranges(ranges)
    case .want: message = .want(try body.ids())
    case .probe: message = .probe(NodeID(try body.bytes32()), token: try body.u64())
    case .probed:
      message = .probed(
        NodeID(try body.bytes32()), token: try body.u64(), answered: try body.u8() & 1 == 1)
    case .epochKey: message = .epochKey(try body.array(32), entry: Array(body.rest()))
    case .refused: message = .refused(Refusal(rawValue: try body.u8()) ?? .unknown)
    case .seen: message = .seen(try body.address())
    case .candidates:
      var addresses: [Address] = []
      while !body.isAtEnd {
        guard addresses.count < Limits.addresses else { throw .tooLong }
        addresses.append(try body.address())
      }
      message = .candidates(addresses)
    case .sentLayer: message = try SentLayer.read(from: &body).map { .sentLayer($0) }
    }
    try body.expectEnd()
    return message
  }
}

/// The reason why a node is not accepted as a member.
public enum Refusal: UInt8, Sendable {
  /// A reason that this version does not know.
  case unknown = 0
  /// The owner removed the node.
  case removed = 1
  /// The node's invite predates the current key epoch.
  case inviteOutdated = 2
  /// The node's invite or role has expired.
  case expired = 3
  /// The node presented neither an invite nor a role.
  case noGrant = 4
  /// The node equivocated: it signed two different entries under one sequence number.
  case equivocated = 5
  /// Others have used the node's invite as often as its owner permits.
  case inviteUsedUp = 6
}

extension Writer {
  fileprivate mutating func ids(_ ids: [UInt64]) {
    precondition(ids.count <= Control.idLimit)
    for id in ids { u64(id) }
  }
}

extension Reader {
  fileprivate mutating func ids() throws(WireError) -> [UInt64] {
    guard remaining <= 8 * Control.idLimit else { throw .tooLong }
    var ids: [UInt64] = []
    while !isAtEnd { ids.append(try u64()) }
    return ids
  }
}
