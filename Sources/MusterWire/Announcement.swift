import MusterBase

/// A member's announcement of its addresses: the plaintext of an announcement datagram, before the
/// signature.
///
/// Layout in bytes: author 32, boot id 8, counter 8, flags 1, echo 16 if bit 0 of the flags is set,
/// count 1, addresses, extensions.
public struct Announcement: Equatable, Sendable {
  /// The member that signs the announcement.
  public var author: NodeID
  /// A random number, drawn at every start of the author's process, which distinguishes the
  /// author's runs but does not order them.
  public var bootID: UInt64
  /// A counter that increases with every announcement of one run; receivers detect replays by this
  /// counter.
  public var counter: UInt64
  /// The 16 bytes of the challenge that this announcement answers; nil if unsolicited.
  public var echo: [UInt8]?
  /// The author's addresses, best first; if empty, receivers use only the source address of the
  /// datagram.
  public var addresses: [Address]

  /// The length of a challenge's echo in bytes.
  public static let echoBytes = 16
  /// The length of the Ed25519 signature that follows the encoding, in bytes.
  public static let signatureBytes = 64

  /// Describes an unsigned announcement. A non-nil `echo` has `echoBytes` bytes; `addresses` has at
  /// most `Limits.addresses` elements.
  public init(
    author: NodeID, bootID: UInt64, counter: UInt64, echo: [UInt8]?, addresses: [Address]
  ) {
    self.author = author
    self.bootID = bootID
    self.counter = counter
    self.echo = echo
    self.addresses = addresses
  }

  /// The bytes that the author signs; on the wire, the signature follows these bytes.
  public func encoded() -> [UInt8] {
    precondition(addresses.count <= Limits.addresses)
    var writer = Writer(capacity: 160)
    writer.append(author.key)
    writer.u64(bootID)
    writer.u64(counter)
    writer.u8(echo == nil ? 0 : 1)
    if let echo {
      precondition(echo.count == Self.echoBytes)
      writer.append(echo)
    }
    writer.u8(UInt8(addresses.count))
    for address in addresses { writer.address(address) }
    return writer.bytes
  }

  /// Decodes an announcement; throws for truncated input, trailing bytes, too many addresses
  /// (`Limits.addresses`) and unknown address families.
  public init(decoding bytes: some Collection<UInt8>) throws(WireError) {
    var reader = Reader(Array(bytes))
    author = NodeID(try reader.bytes32())
    bootID = try reader.u64()
    counter = try reader.u64()
    let flags = try reader.u8()
    echo = flags & 1 == 1 ? try reader.array(Self.echoBytes) : nil
    let count = Int(try reader.u8())
    guard count <= Limits.addresses else { throw .tooLong }
    addresses = []
    for _ in 0..<count { addresses.append(try reader.address()) }
    // An extension consists of a type (1 byte), a length (2 bytes) and a value; this version
    // defines none and skips all.
    while !reader.isAtEnd {
      _ = try reader.u8()
      _ = try reader.slice(Int(try reader.u16()))
    }
  }
}

/// A return routability check of an announcement's author: the plaintext of a challenge datagram.
public struct Challenge: Equatable, Sendable {
  /// The member that must answer the challenge.
  public var target: NodeID
  /// The boot id of the challenged announcement.
  public var bootID: UInt64
  /// The counter of the challenged announcement.
  public var counter: UInt64
  /// 16 bytes that the target returns in its next announcement.
  public var echo: [UInt8]

  /// `echo` has `Announcement.echoBytes` random bytes.
  public init(target: NodeID, bootID: UInt64, counter: UInt64, echo: [UInt8]) {
    self.target = target
    self.bootID = bootID
    self.counter = counter
    self.echo = echo
  }

  /// Encodes the challenge. Layout in bytes: target 32, boot id 8, counter 8, echo 16.
  public func encoded() -> [UInt8] {
    precondition(echo.count == Announcement.echoBytes)
    var writer = Writer(capacity: 64)
    writer.append(target.key)
    writer.u64(bootID)
    writer.u64(counter)
    writer.append(echo)
    return writer.bytes
  }

  /// Decodes a challenge; throws for truncated input and trailing bytes.
  public init(decoding bytes: [UInt8]) throws(WireError) {
    var reader = Reader(bytes)
    target = NodeID(try reader.bytes32())
    bootID = try reader.u64()
    counter = try reader.u64()
    echo = try reader.array(Announcement.echoBytes)
    try reader.expectEnd()
  }
}
