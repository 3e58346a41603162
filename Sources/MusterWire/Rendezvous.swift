import MusterBase

/// "May I ask you something?": a node's first word to a rendezvous, as long as the answer at least.
///
/// Layout: kind 1, token 8, zeros up to 64 bytes.
public struct RendezvousHello: Equatable, Sendable {
  /// The sender's own, sent back with the answer.
  public var token: UInt64

  public static let bytes = 64

  public init(token: UInt64) { self.token = token }

  public func encoded() -> [UInt8] {
    var writer = Writer(capacity: Self.bytes)
    writer.u8(DatagramKind.rendezvousHello.rawValue)
    writer.u64(token)
    return writer.bytes + [UInt8](repeating: 0, count: Self.bytes - writer.bytes.count)
  }

  public init(decoding datagram: [UInt8]) throws(WireError) {
    var reader = Reader(datagram)
    guard datagram.count == Self.bytes,
      try reader.u8() == DatagramKind.rendezvousHello.rawValue
    else { throw .invalidValue }
    token = try reader.u64()
  }
}

/// The answer to a hello: what proves the asker's address, and what the rendezvous sees of it.
///
/// Layout: kind 1, token 8, cookie 16, period 8, age 2, address seen.
public struct RendezvousCookie: Equatable, Sendable {
  public var token: UInt64
  public var cookie: [UInt8]
  /// Which period the rendezvous's clock is in: tags are derived from it.
  public var period: UInt64
  /// Seconds since the period began.
  public var age: UInt16
  /// Where the hello came from: the asker's outside address.
  public var seen: Address

  public static let cookieBytes = 16

  public init(token: UInt64, cookie: [UInt8], period: UInt64, age: UInt16, seen: Address) {
    self.token = token
    self.cookie = cookie
    self.period = period
    self.age = age
    self.seen = seen
  }

  public func encoded() -> [UInt8] {
    precondition(cookie.count == Self.cookieBytes)
    var writer = Writer(capacity: RendezvousHello.bytes)
    writer.u8(DatagramKind.rendezvousCookie.rawValue)
    writer.u64(token)
    writer.append(cookie)
    writer.u64(period)
    writer.u16(age)
    writer.address(seen)
    return writer.bytes
  }

  public init(decoding datagram: [UInt8]) throws(WireError) {
    var reader = Reader(datagram)
    guard try reader.u8() == DatagramKind.rendezvousCookie.rawValue else { throw .invalidValue }
    token = try reader.u64()
    cookie = try reader.array(Self.cookieBytes)
    period = try reader.u64()
    age = try reader.u16()
    seen = try reader.address()
    try reader.expectEnd()
  }
}

/// "Keep this announce under this tag, and give me those of others": signed with the tag's key.
///
/// Layout: kind 1, token 8, cookie 16, period 8, tag 32, slot 8, flags 1, announce's length 2 and
/// bytes, signature 64.
public struct RendezvousRegistration: Equatable, Sendable {
  public var token: UInt64
  public var cookie: [UInt8]
  public var period: UInt64
  /// A public key that all members of a channel derive for this period.
  public var tag: Bytes32
  /// Which of the tag's records this is: drawn by each node for each run and channel.
  public var slot: UInt64
  /// Whether the records of the others are wanted.
  public var wantsRecords: Bool
  /// A sealed announce as it goes over the network elsewhere; nothing takes the record away.
  public var announcement: [UInt8]

  /// An announce of eight IPv6 addresses has 377.
  public static let announcementLimit = 512
  public static let signatureBytes = 64

  public init(
    token: UInt64, cookie: [UInt8], period: UInt64, tag: Bytes32, slot: UInt64,
    wantsRecords: Bool, announcement: [UInt8]
  ) {
    self.token = token
    self.cookie = cookie
    self.period = period
    self.tag = tag
    self.slot = slot
    self.wantsRecords = wantsRecords
    self.announcement = announcement
  }

  /// Everything before the signature.
  public func encoded() -> [UInt8] {
    precondition(cookie.count == RendezvousCookie.cookieBytes)
    precondition(announcement.count <= Self.announcementLimit)
    var writer = Writer(capacity: 640)
    writer.u8(DatagramKind.rendezvousRegistration.rawValue)
    writer.u64(token)
    writer.append(cookie)
    writer.u64(period)
    writer.append(tag)
    writer.u64(slot)
    writer.u8(wantsRecords ? 1 : 0)
    writer.u16(UInt16(announcement.count))
    writer.append(announcement)
    return writer.bytes
  }

  /// Reads what is before the signature.
  public init(decoding bytes: some Collection<UInt8>) throws(WireError) {
    var reader = Reader(Array(bytes))
    guard try reader.u8() == DatagramKind.rendezvousRegistration.rawValue else {
      throw .invalidValue
    }
    token = try reader.u64()
    cookie = try reader.array(RendezvousCookie.cookieBytes)
    period = try reader.u64()
    tag = try reader.bytes32()
    slot = try reader.u64()
    wantsRecords = try reader.u8() & 1 == 1
    let count = Int(try reader.u16())
    guard count <= Self.announcementLimit else { throw .tooLong }
    announcement = try reader.array(count)
    try reader.expectEnd()
  }
}

/// What a rendezvous knows under a tag: the answer to a registration, and news after it.
///
/// Layout: kind 1, token 8, count 1, then for each record the address it came from and its
/// announce's length 2 and bytes.
public struct RendezvousRecords: Equatable, Sendable {
  /// The one of the receiver's registration.
  public var token: UInt64
  public var records: [Record]

  public struct Record: Equatable, Sendable {
    /// Where the registration came from: its author's outside address, says the rendezvous.
    public var seen: Address
    /// A sealed announce.
    public var announcement: [UInt8]

    public init(seen: Address, announcement: [UInt8]) {
      self.seen = seen
      self.announcement = announcement
    }

    var encodedBytes: Int { (seen.isIPv6 ? 19 : 7) + 2 + announcement.count }
  }

  static let headerBytes = 10

  public init(token: UInt64, records: [Record]) {
    self.token = token
    self.records = records
  }

  /// As many datagrams as it takes; one without records when there are none.
  public static func datagrams(token: UInt64, _ records: [Record]) -> [[UInt8]] {
    var datagrams: [[UInt8]] = []
    var batch = RendezvousRecords(token: token, records: [])
    var bytes = headerBytes
    for record in records {
      if bytes + record.encodedBytes > Limits.datagramBytes {
        datagrams.append(batch.encoded())
        batch.records = []
        bytes = headerBytes
      }
      batch.records.append(record)
      bytes += record.encodedBytes
    }
    if datagrams.isEmpty || !batch.records.isEmpty { datagrams.append(batch.encoded()) }
    return datagrams
  }

  public func encoded() -> [UInt8] {
    precondition(records.count <= 255)
    var writer = Writer(capacity: Limits.datagramBytes)
    writer.u8(DatagramKind.rendezvousRecords.rawValue)
    writer.u64(token)
    writer.u8(UInt8(records.count))
    for record in records {
      writer.address(record.seen)
      writer.u16(UInt16(record.announcement.count))
      writer.append(record.announcement)
    }
    return writer.bytes
  }

  public init(decoding datagram: [UInt8]) throws(WireError) {
    guard datagram.count <= Limits.datagramBytes else { throw .tooLong }
    var reader = Reader(datagram)
    guard try reader.u8() == DatagramKind.rendezvousRecords.rawValue else { throw .invalidValue }
    token = try reader.u64()
    let count = Int(try reader.u8())
    records = []
    for _ in 0..<count {
      let seen = try reader.address()
      let length = Int(try reader.u16())
      guard length <= RendezvousRegistration.announcementLimit else { throw .tooLong }
      records.append(Record(seen: seen, announcement: try reader.array(length)))
    }
    try reader.expectEnd()
  }
}
