import MusterBase
import MusterCrypto
import MusterWire

/// The two MACs at the end of handshake messages (WireGuard whitepaper section 5.4.4).
enum HandshakeMAC {
  static let bytes = 16
  static let none = [UInt8](repeating: 0, count: bytes)

  static func compute(_ message: ArraySlice<UInt8>, _ key: SecretBytes) -> [UInt8] {
    Blake2b.mac(message, key: key, count: bytes)
  }

  /// Computes the second MAC, keyed by the cookie.
  static func compute(_ message: ArraySlice<UInt8>, cookie: [UInt8]) -> [UInt8] {
    compute(message, SecretBytes(cookie, in: .heap))
  }

  /// Appends the first MAC, and the second MAC or, without a cookie, zeros.
  static func finish(_ message: [UInt8], _ key: SecretBytes, cookie: [UInt8]?) -> [UInt8] {
    var result = message
    result += compute(result[...], key)
    result += cookie.map { compute(result[...], cookie: $0) } ?? none
    return result
  }
}

/// The two MACs of a received message, with the bytes that each covers.
struct ReceivedMACs {
  let mac1, mac2: ArraySlice<UInt8>
  let covered1, covered2: ArraySlice<UInt8>

  init(_ datagram: [UInt8]) {
    covered2 = datagram.dropLast(HandshakeMAC.bytes)
    covered1 = covered2.dropLast(HandshakeMAC.bytes)
    mac1 = datagram[covered1.endIndex..<covered2.endIndex]
    mac2 = datagram[covered2.endIndex...]
  }

  var hasMAC2: Bool { mac2.contains { $0 != 0 } }

  func mac1IsValid(_ key: SecretBytes) -> Bool {
    ConstantTime.equal(mac1, HandshakeMAC.compute(covered1, key))
  }

  func mac2IsValid(cookie: [UInt8]) -> Bool {
    ConstantTime.equal(mac2, HandshakeMAC.compute(covered2, cookie: cookie))
  }
}

/// The handshake initiation (message 1). Layout in bytes: `0x10 | sender's index 4 | ephemeral 32 |
/// sealed static 48 | sealed payload 76 | mac1 16 | mac2 16`.
struct Initiation {
  static let noiseBytes = 32 + 48 + InitiationPayload.bytes + AEAD.tagBytes
  static let bytes = 5 + noiseBytes + 2 * HandshakeMAC.bytes

  let senderIndex: UInt32
  let noise: ArraySlice<UInt8>
  let macs: ReceivedMACs

  init?(_ datagram: [UInt8]) {
    guard datagram.count == Self.bytes else { return nil }
    var reader = Reader(datagram[1...])
    guard let index = try? reader.u32(), let noise = try? reader.slice(Self.noiseBytes) else {
      return nil
    }
    senderIndex = index
    self.noise = noise
    macs = ReceivedMACs(datagram)
  }

  static func encode(
    senderIndex: UInt32, noise: [UInt8], key: SecretBytes, cookie: [UInt8]?
  ) -> [UInt8] {
    var writer = Writer(capacity: bytes)
    writer.u8(DatagramKind.handshakeInitiation.rawValue)
    writer.u32(senderIndex)
    writer.append(noise)
    return HandshakeMAC.finish(writer.bytes, key, cookie: cookie)
  }
}

/// The handshake response (message 2). Layout in bytes: `0x11 | sender's index 4 | receiver's index
/// 4 | ephemeral 32 | sealed payload 28 | mac1 16 | mac2 16`.
struct Response {
  static let noiseBytes = 32 + ResponsePayload.bytes + AEAD.tagBytes
  static let bytes = 9 + noiseBytes + 2 * HandshakeMAC.bytes

  let senderIndex: UInt32
  let receiverIndex: UInt32
  let noise: ArraySlice<UInt8>
  let macs: ReceivedMACs

  init?(_ datagram: [UInt8]) {
    guard datagram.count == Self.bytes else { return nil }
    var reader = Reader(datagram[1...])
    guard let sender = try? reader.u32(), let receiver = try? reader.u32(),
      let noise = try? reader.slice(Self.noiseBytes)
    else { return nil }
    senderIndex = sender
    receiverIndex = receiver
    self.noise = noise
    macs = ReceivedMACs(datagram)
  }

  static func encode(
    senderIndex: UInt32, receiverIndex: UInt32, noise: [UInt8], key: SecretBytes
  ) -> [UInt8] {
    var writer = Writer(capacity: bytes)
    writer.u8(DatagramKind.handshakeResponse.rawValue)
    writer.u32(senderIndex)
    writer.u32(receiverIndex)
    writer.append(noise)
    return HandshakeMAC.finish(writer.bytes, key, cookie: nil)
  }
}

/// The encrypted payload of an initiation.
struct InitiationPayload: Equatable {
  static let bytes = 32 + 8 + 8 + 8 + 4

  var author: NodeID
  var bootID: UInt64
  /// The counter, which increases with every initiation of one run of the author; equal and lower
  /// counters are replays.
  var counter: UInt64
  /// The boot id of the intended responder, which voids the initiation after the responder
  /// restarts.
  var responderBootID: UInt64
  /// What the initiator offers.
  var capabilities: LinkCapabilities

  func encoded() -> [UInt8] {
    var writer = Writer(capacity: Self.bytes)
    writer.append(author.key)
    writer.u64(bootID)
    writer.u64(counter)
    writer.u64(responderBootID)
    writer.u32(capabilities.rawValue)
    return writer.bytes
  }

  init(
    author: NodeID, bootID: UInt64, counter: UInt64, responderBootID: UInt64,
    capabilities: LinkCapabilities
  ) {
    self.author = author
    self.bootID = bootID
    self.counter = counter
    self.responderBootID = responderBootID
    self.capabilities = capabilities
  }

  init(decoding bytes: [UInt8]) throws(WireError) {
    var reader = Reader(bytes)
    author = NodeID(try reader.bytes32())
    bootID = try reader.u64()
    counter = try reader.u64()
    responderBootID = try reader.u64()
    capabilities = LinkCapabilities(rawValue: try reader.u32())
    try reader.expectEnd()
  }
}

/// The encrypted payload of a response.
struct ResponsePayload: Equatable {
  static let bytes = 8 + 4

  var bootID: UInt64
  /// What the responder offers.
  var capabilities: LinkCapabilities

  func encoded() -> [UInt8] {
    var writer = Writer(capacity: Self.bytes)
    writer.u64(bootID)
    writer.u32(capabilities.rawValue)
    return writer.bytes
  }

  init(bootID: UInt64, capabilities: LinkCapabilities) {
    self.bootID = bootID
    self.capabilities = capabilities
  }

  init(decoding bytes: [UInt8]) throws(WireError) {
    var reader = Reader(bytes)
    bootID = try reader.u64()
    capabilities = LinkCapabilities(rawValue: try reader.u32())
    try reader.expectEnd()
  }
}
