/// A value of 32 opaque bytes held inline, ordered as byte strings.
public struct Bytes32: Hashable, Comparable, Sendable {
  // The words are big-endian, so comparing the words compares the bytes in order.
  private var w0, w1, w2, w3: UInt64

  /// Takes exactly 32 bytes; nil for any other count.
  public init?(_ bytes: some Collection<UInt8>) {
    guard bytes.count == 32 else { return nil }
    var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
    var index = 0
    for byte in bytes {
      switch index >> 3 {
      case 0: words.0 = words.0 << 8 | UInt64(byte)
      case 1: words.1 = words.1 << 8 | UInt64(byte)
      case 2: words.2 = words.2 << 8 | UInt64(byte)
      default: words.3 = words.3 << 8 | UInt64(byte)
      }
      index += 1
    }
    (w0, w1, w2, w3) = words
  }

  /// A value of 32 zero bytes.
  public static let zero = Bytes32([UInt8](repeating: 0, count: 32))!  // 32 bytes by construction

  /// The 32 bytes, most significant first.
  public var bytes: [UInt8] {
    var result = [UInt8]()
    result.reserveCapacity(32)
    for word in [w0, w1, w2, w3] {
      for shift in stride(from: 56, through: 0, by: -8) {
        result.append(UInt8(truncatingIfNeeded: word >> UInt64(shift)))
      }
    }
    return result
  }

  /// The bytes as 64 lower-case hex digits.
  public var hex: String { Hex.encode(bytes) }

  /// The sum of two 256-bit big-endian integers, modulo 2^256.
  public static func &+ (a: Bytes32, b: Bytes32) -> Bytes32 {
    var sum = Bytes32.zero
    var carry = false
    func add(_ x: UInt64, _ y: UInt64) -> UInt64 {
      let (partial, first) = x.addingReportingOverflow(y)
      let (word, second) = partial.addingReportingOverflow(carry ? 1 : 0)
      carry = first || second
      return word
    }
    sum.w3 = add(a.w3, b.w3)
    sum.w2 = add(a.w2, b.w2)
    sum.w1 = add(a.w1, b.w1)
    sum.w0 = add(a.w0, b.w0)
    return sum
  }

  /// The difference of two 256-bit big-endian integers, modulo 2^256.
  public static func &- (a: Bytes32, b: Bytes32) -> Bytes32 {
    var difference = Bytes32.zero
    var borrow = false
    func subtract(_ x: UInt64, _ y: UInt64) -> UInt64 {
      let (partial, first) = x.subtractingReportingOverflow(y)
      let (word, second) = partial.subtractingReportingOverflow(borrow ? 1 : 0)
      borrow = first || second
      return word
    }
    difference.w3 = subtract(a.w3, b.w3)
    difference.w2 = subtract(a.w2, b.w2)
    difference.w1 = subtract(a.w1, b.w1)
    difference.w0 = subtract(a.w0, b.w0)
    return difference
  }

  /// The first eight bytes as a big-endian integer. The prefix suffices to identify an entry or a
  /// node where a collision costs an additional look-up but not security.
  public var prefix: UInt64 { w0 }

  public static func < (a: Bytes32, b: Bytes32) -> Bool {
    if a.w0 != b.w0 { return a.w0 < b.w0 }
    if a.w1 != b.w1 { return a.w1 < b.w1 }
    if a.w2 != b.w2 { return a.w2 < b.w2 }
    return a.w3 < b.w3
  }
}

/// A node's identity: its Ed25519 public key (RFC 8032).
public struct NodeID: Hashable, Comparable, Sendable, CustomStringConvertible {
  /// The public key in the encoding of RFC 8032.
  public let key: Bytes32

  public init(_ key: Bytes32) { self.key = key }

  /// Whether `text` is this id, in full or shortened to 16 hex digits of either case.
  public func isNamed(by text: String) -> Bool {
    let text = text.lowercased()
    return text == short || text == key.hex
  }

  /// The first 16 hex digits of the key, as shown to people and in events.
  public var short: String { String(key.hex.prefix(16)) }

  /// The same text as `short`.
  public var description: String { short }

  public static func < (a: NodeID, b: NodeID) -> Bool { a.key < b.key }
}

/// A channel's identity: a hash of its key (open channels) or of its genesis (created channels).
public struct ChannelID: Hashable, Comparable, Sendable, CustomStringConvertible {
  /// The hash that identifies the channel.
  public let hash: Bytes32

  public init(_ hash: Bytes32) { self.hash = hash }

  /// The first 16 hex digits of the hash.
  public var description: String { String(hash.hex.prefix(16)) }

  /// Whether `text` is this id, in full or shortened to 16 hex digits of either case.
  public func isNamed(by text: String) -> Bool {
    let text = text.lowercased()
    return text == description || text == hash.hex
  }

  public static func < (a: ChannelID, b: ChannelID) -> Bool { a.hash < b.hash }
}

/// The id of one channel key, which is a hash of its secret. A channel has one key for each epoch.
public struct KeyID: Hashable, Comparable, Sendable, CustomStringConvertible {
  /// The hash that identifies the key.
  public let hash: Bytes32

  public init(_ hash: Bytes32) { self.hash = hash }

  /// The first 16 hex digits of the hash.
  public var description: String { String(hash.hex.prefix(16)) }

  public static func < (a: KeyID, b: KeyID) -> Bool { a.hash < b.hash }
}

/// Identifies the session link with one peer: the handshakes and sessions under one channel key.
/// MusterLink calls it a link for short.
public struct SessionLinkID: Hashable, Comparable, Sendable {
  /// The id of the channel key.
  public let key: KeyID
  /// The id of the peer.
  public let peer: NodeID

  public init(key: KeyID, peer: NodeID) {
    self.key = key
    self.peer = peer
  }

  /// Orders by peer, then by key, so that the links with one peer are adjacent in tables.
  public static func < (a: SessionLinkID, b: SessionLinkID) -> Bool {
    a.peer != b.peer ? a.peer < b.peer : a.key < b.key
  }
}

/// Identifies the link with one peer in one channel, under whichever channel key; `Associations` in
/// MusterCore holds its state.
public struct LinkID: Hashable, Comparable, Sendable {
  /// The id of the channel.
  public let channel: ChannelID
  /// The id of the peer.
  public let peer: NodeID

  public init(channel: ChannelID, peer: NodeID) {
    self.channel = channel
    self.peer = peer
  }

  public static func < (a: LinkID, b: LinkID) -> Bool {
    a.peer != b.peer ? a.peer < b.peer : a.channel < b.channel
  }
}

/// A call's identity, which consists of 16 random bytes drawn by the node that starts the call.
public struct CallID: Hashable, Comparable, Sendable, CustomStringConvertible {
  /// The first eight bytes, big-endian.
  public let high: UInt64
  /// The last eight bytes, big-endian.
  public let low: UInt64

  public init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  /// The id as 32 lower-case hex digits.
  public var description: String { Hex.encode(high) + Hex.encode(low) }

  public static func < (a: CallID, b: CallID) -> Bool {
    a.high != b.high ? a.high < b.high : a.low < b.low
  }
}

/// Hexadecimal encoding and decoding of bytes.
public enum Hex {
  private static let digits = Array("0123456789abcdef".utf8)

  /// Encodes each byte as two lower-case digits.
  public static func encode(_ bytes: some Collection<UInt8>) -> String {
    var text = [UInt8]()
    text.reserveCapacity(bytes.count * 2)
    for byte in bytes {
      text.append(digits[Int(byte >> 4)])
      text.append(digits[Int(byte & 15)])
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// Encodes a word as 16 lower-case digits, most significant first.
  public static func encode(_ word: UInt64) -> String {
    encode((0..<8).map { UInt8(truncatingIfNeeded: word >> UInt64(56 - 8 * $0)) })
  }

  /// Whether a text has the form of an id, 16 or 64 digits of either case. It names nothing but
  /// what has that id, since anybody can choose a name, and nobody an id.
  public static func isID(_ text: some StringProtocol) -> Bool {
    (text.utf8.count == 16 || text.utf8.count == 64) && decode(text) != nil
  }

  /// Decodes digits of either case; nil for an odd length or any other character.
  public static func decode(_ text: some StringProtocol) -> [UInt8]? {
    let nibbles = text.utf8.map { digit -> UInt8? in
      switch digit {
      case 0x30...0x39: digit - 0x30
      case 0x61...0x66: digit - 0x61 + 10
      case 0x41...0x46: digit - 0x41 + 10
      default: nil
      }
    }
    guard nibbles.count % 2 == 0 else { return nil }
    var bytes = [UInt8]()
    for index in stride(from: 0, to: nibbles.count, by: 2) {
      guard let high = nibbles[index], let low = nibbles[index + 1] else { return nil }
      bytes.append(high << 4 | low)
    }
    return bytes
  }
}
