import MusterBase

/// "This member is here": what is sealed inside an announce datagram, before its signature.
///
/// Layout: author 32, boot id 8, counter 8, flags 1, echo 16 if flag 0, count 1, addresses,
/// extensions.
public struct Announcement: Equatable, Sendable {
  public var author: NodeID
  /// Drawn anew at every start of the author's process.
  public var bootID: UInt64
  /// Grows with every announce of one boot.
  public var counter: UInt64
  /// The answer to a challenge: its 16 bytes sent back.
  public var echo: [UInt8]?
  /// Where the author may be reached, best first; empty means "where this came from".
  public var addresses: [Address]

  public static let echoBytes = 16
  public static let signatureBytes = 64

  public init(
    author: NodeID, bootID: UInt64, counter: UInt64, echo: [UInt8]?, addresses: [Address]
  ) {
    self.author = author
    self.bootID = bootID
    self.counter = counter
    self.echo = echo
    self.addresses = addresses
  }

  /// The bytes that the author signs and that are followed by the signature.
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
    // Extensions, type 1, length 2, value: this version defines none and skips all.
    while !reader.isAtEnd {
      _ = try reader.u8()
      _ = try reader.slice(Int(try reader.u16()))
    }
  }
}

/// "If you are really there, send this back": what is sealed inside a challenge datagram.
public struct Challenge: Equatable, Sendable {
  /// Who is asked.
  public var target: NodeID
  /// The announce that is asked about.
  public var bootID: UInt64
  public var counter: UInt64
  public var echo: [UInt8]

  public init(target: NodeID, bootID: UInt64, counter: UInt64, echo: [UInt8]) {
    self.target = target
    self.bootID = bootID
    self.counter = counter
    self.echo = echo
  }

  public func encoded() -> [UInt8] {
    precondition(echo.count == Announcement.echoBytes)
    var writer = Writer(capacity: 64)
    writer.append(target.key)
    writer.u64(bootID)
    writer.u64(counter)
    writer.append(echo)
    return writer.bytes
  }

  public init(decoding bytes: [UInt8]) throws(WireError) {
    var reader = Reader(bytes)
    target = NodeID(try reader.bytes32())
    bootID = try reader.u64()
    counter = try reader.u64()
    echo = try reader.array(Announcement.echoBytes)
    try reader.expectEnd()
  }
}
