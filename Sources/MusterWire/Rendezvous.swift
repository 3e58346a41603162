import MusterBase

/// A node's request for a cookie: its first datagram to a rendezvous server. The hello is padded to
/// at least the size of the answer, so that the server cannot be used for amplification (as in RFC
/// 9000 section 8.1).
///
/// Layout in bytes: kind 1, token 8, zeros up to a length of 64.
public struct RendezvousHello: Equatable, Sendable {
  /// A number chosen by the sender and echoed in the answer.
  public var token: UInt64

  /// The length of the datagram in bytes.
  public static let bytes = 64

  /// `token` should be random: an answer is valid only if it echoes the token.
  public init(token: UInt64) { self.token = token }

  /// Encodes the whole datagram, padding included.
  public func encoded() -> [UInt8] {
    var writer = Writer(capacity: Self.bytes)
    writer.u8(DatagramKind.rendezvousHello.rawValue)
    writer.u64(token)
    return writer.bytes + [UInt8](repeating: 0, count: Self.bytes - writer.bytes.count)
  }

  /// Decodes a hello; throws for another kind or size. The padding is not checked.
  public init(decoding datagram: [UInt8]) throws(WireError) {
    var reader = Reader(datagram)
    guard datagram.count == Self.bytes,
      try reader.u8() == DatagramKind.rendezvousHello.rawValue
    else { throw .invalidValue }
    token = try reader.u64()
  }
}

/// The answer to a hello: the node's address as observed by the rendezvous server, and a cookie
/// with which the node proves that address.
///
/// Layout in bytes: kind 1, token 8, cookie 16, period 8, age 2, address seen.
public struct RendezvousCookie: Equatable, Sendable {
  /// The token of the hello.
  public var token: UInt64
  /// 16 opaque bytes that the node returns in its registrations.
  public var cookie: [UInt8]
  /// The number of the current period by the rendezvous server's clock; tags are derived from this
  /// number.
  public var period: UInt64
  /// The time since the period began, in seconds.
  public var age: UInt16
  /// The source address of the hello: the node's server-reflexive address (RFC 8445).
  public var seen: Address

  /// The length of a cookie in bytes.
  public static let cookieBytes = 16

  /// `cookie` has `cookieBytes` bytes; `age` is in seconds.
  public init(token: UInt64, cookie: [UInt8], period: UInt64, age: UInt16, seen: Address) {
    self.token = token
    self.cookie = cookie
    self.period = period
    self.age = age
    self.seen = seen
  }

  /// Encodes the whole datagram.
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

  /// Decodes a cookie; throws for another kind, truncated input and trailing bytes.
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

/// A registration of an announcement under a tag, signed with the tag's key; it can also request
/// the announcements of other members.
///
/// Layout in bytes: kind 1, token 8, cookie 16, period 8, tag 32, slot 8, flags 1, announcement's
/// length 2 and bytes, signature 64.
public struct RendezvousRegistration: Equatable, Sendable {
  /// A number chosen by the sender and echoed in the answer.
  public var token: UInt64
  /// The cookie issued by the rendezvous server, which proves the sender's address.
  public var cookie: [UInt8]
  /// The period that the tag belongs to.
  public var period: UInt64
  /// The tag's public key, which all members of a channel derive for this period.
  public var tag: Bytes32
  /// A random number that distinguishes this node's record from other records under the tag; drawn
  /// anew for each run and channel.
  public var slot: UInt64
  /// Whether the answer should carry the other members' records.
  public var wantsRecords: Bool
  /// The sealed announcement, in the same form as on the local network; empty to withdraw the
  /// record.
  public var announcement: [UInt8]

  /// The maximum length of an announcement in bytes; an announcement of eight IPv6 addresses has
  /// 307.
  public static let announcementLimit = 512
  /// The length of the signature by the tag's key in bytes.
  public static let signatureBytes = 64

  /// Describes an unsigned registration. `announcement` has at most `announcementLimit` bytes.
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

  /// The bytes that the tag's key signs; the signature follows these bytes.
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

  /// Decodes the bytes before the signature; throws for another kind or an announcement over the
  /// limit.
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

/// Records under a tag: the answer to a registration, or records registered after that answer.
///
/// Layout in bytes: kind 1, token 8, count 1, then for each record the source address, and the
/// announcement's length 2 and bytes.
public struct RendezvousRecords: Equatable, Sendable {
  /// The token of the receiver's registration.
  public var token: UInt64
  /// The records of other members.
  public var records: [Record]

  /// One registered announcement.
  public struct Record: Equatable, Sendable {
    /// The source address of the registration, as the rendezvous server saw it (server-reflexive).
    public var seen: Address
    /// The sealed announcement.
    public var announcement: [UInt8]

    /// Combines a sealed announcement with the source address of its registration.
    public init(seen: Address, announcement: [UInt8]) {
      self.seen = seen
      self.announcement = announcement
    }

    /// The bytes of the record in a datagram.
    public var encodedBytes: Int { (seen.isIPv6 ? 19 : 7) + 2 + announcement.count }
  }

  /// The bytes of a datagram without records.
  public static let headerBytes = 10

  /// `records` has at most 255 elements; `datagrams` splits longer lists.
  public init(token: UInt64, records: [Record]) {
    self.token = token
    self.records = records
  }

  /// Splits the records over as many datagrams as needed; one datagram with a count of 0 if there
  /// are no records.
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

  /// Encodes the whole datagram. There are at most 255 records; the datagram limit allows far
  /// fewer.
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

  /// Decodes records; throws for another kind, an oversized datagram, truncated input and trailing
  /// bytes.
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
