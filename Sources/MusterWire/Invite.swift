import MusterBase

/// The reason why a text is not a usable invite.
public enum InviteFault: Error, Equatable, Sendable {
  /// The text does not begin with the scheme, contains inner white space, or is too long.
  case notAnInvite
  /// The invite is incomplete or altered: its CRC does not match, or its content does not decode.
  case damaged
  /// The invite has a version that this program does not know.
  case newerVersion
}

/// An invite: all data needed to join a channel, as one URL that can be passed on by any means.
///
/// Layout: `muster://NAME/#` and the base64url encoding of, in bytes: version 1, flags 1 (bit 0:
/// created channel), epoch 4, key 32; if created: genesis length 2 and bytes, one-time seed 32,
/// grant length 2 and bytes; then name length 1 and UTF-8, count of peers 1 with the length 1 and
/// text of each, the same for rendezvous servers; CRC-32 4.
public struct Invite: Equatable, Sendable {
  /// The channel's name.
  public var name: String
  /// The genesis with its signature; nil for an open channel.
  public var genesis: [UInt8]?
  /// The key epoch of `key`.
  public var epoch: UInt32
  /// The channel's secret, 32 bytes.
  public var key: [UInt8]
  /// The Ed25519 seed of the one-time key that the grant names; nil for an open channel. The holder
  /// of the invite signs with this key to transfer the role to the key of its own identity.
  public var oneTimeSeed: [UInt8]?
  /// An owner's signed entry with a bearer grant; nil for an open channel.
  public var grant: [UInt8]?
  /// The addresses (`HOST:PORT`) of nodes that may be reachable.
  public var peers: [String]
  /// The addresses (`HOST:PORT`) of rendezvous servers.
  public var rendezvous: [String]

  /// The URL's scheme with the slashes.
  public static let scheme = "muster://"
  /// The maximum length of a URL in bytes; longer text is rejected without parsing.
  public static let urlLimit = 8192
  private static let version: UInt8 = 1
  private static let hintBytes = 255

  /// `genesis`, `oneTimeSeed` and `grant` are set for a created channel, nil for an open one.
  public init(
    name: String, genesis: [UInt8]?, epoch: UInt32, key: [UInt8], oneTimeSeed: [UInt8]?,
    grant: [UInt8]?, peers: [String], rendezvous: [String]
  ) {
    self.name = name
    self.genesis = genesis
    self.epoch = epoch
    self.key = key
    self.oneTimeSeed = oneTimeSeed
    self.grant = grant
    self.peers = peers
    self.rendezvous = rendezvous
  }

  // MARK: Writing

  /// The invite as a URL. The key is in the fragment, which browsers do not send to servers (RFC
  /// 3986 section 3.5).
  public var url: String {
    "\(Self.scheme)\(Self.escaped(name))/#\(Base64URL.encode(encoded))"
  }

  private var encoded: [UInt8] {
    precondition(key.count == 32 && name.utf8.count <= Limits.channelNameBytes)
    var writer = Writer(capacity: 512)
    writer.u8(Self.version)
    writer.u8(genesis == nil ? 0 : 1)
    writer.u32(epoch)
    writer.append(key)
    if let genesis {
      let (seed, grant) = (oneTimeSeed ?? [], grant ?? [])
      precondition(seed.count == 32 && genesis.count <= Genesis.signedBytes)
      writer.u16(UInt16(genesis.count))
      writer.append(genesis)
      writer.append(seed)
      writer.u16(UInt16(grant.count))
      writer.append(grant)
    }
    writer.text(name)
    for hints in [peers, rendezvous] {
      let usable = hints.filter { $0.utf8.count <= Self.hintBytes }.prefix(Limits.inviteHints)
      writer.u8(UInt8(usable.count))
      for hint in usable { writer.text(hint) }
    }
    writer.u32(CRC32.checksum(writer.bytes))
    return writer.bytes
  }

  /// Percent-encodes all characters except unreserved ones (RFC 3986 section 2).
  private static func escaped(_ name: String) -> String {
    var text = ""
    for byte in name.utf8 {
      switch byte {
      case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F, 0x7E:
        text.unicodeScalars.append(Unicode.Scalar(byte))
      default: text += "%" + Hex.encode([byte]).uppercased()
      }
    }
    return text
  }

  // MARK: Reading

  /// Parses a URL, ignoring surrounding white space. The channel's name is taken from the fragment;
  /// the name in the path is informative only.
  public init(url: String) throws(InviteFault) {
    guard url.utf8.count <= Self.urlLimit else { throw .notAnInvite }
    let text = url.split(whereSeparator: \.isWhitespace)
    guard text.count == 1, text[0].hasPrefix(Self.scheme) else { throw .notAnInvite }
    let parts = text[0].dropFirst(Self.scheme.count).split(
      separator: "#", omittingEmptySubsequences: false)
    guard parts.count == 2 else { throw .damaged }
    guard let bytes = Base64URL.decode(parts[1]), bytes.count > 4 else { throw .damaged }
    guard bytes[0] <= Self.version else { throw .newerVersion }
    let body = Array(bytes.dropLast(4))
    let sum = bytes.suffix(4).reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
    guard CRC32.checksum(body) == sum else { throw .damaged }
    do { try self.init(decoding: body) } catch { throw .damaged }
  }

  private init(decoding bytes: [UInt8]) throws(WireError) {
    var reader = Reader(bytes)
    guard try reader.u8() == Self.version else { throw .unsupported }
    let isCreated = try reader.u8() & 1 == 1
    epoch = try reader.u32()
    key = try reader.array(32)
    if isCreated {
      let length = Int(try reader.u16())
      guard length <= Genesis.signedBytes else { throw .tooLong }
      genesis = try reader.array(length)
      oneTimeSeed = try reader.array(32)
      let grantLength = Int(try reader.u16())
      guard grantLength <= Redemption.grantEntryLimit else { throw .tooLong }
      grant = try reader.array(grantLength)
    }
    name = try reader.text(limit: Limits.channelNameBytes)
    peers = try Self.hints(&reader)
    rendezvous = try Self.hints(&reader)
    try reader.expectEnd()
    guard !name.isEmpty, DisplayText.sanitized(name, limit: Limits.channelNameBytes) == name else {
      throw .invalidValue
    }
  }

  private static func hints(_ reader: inout Reader) throws(WireError) -> [String] {
    let count = Int(try reader.u8())
    guard count <= Limits.inviteHints else { throw .tooLong }
    var hints: [String] = []
    for _ in 0..<count { hints.append(try reader.text(limit: hintBytes)) }
    return hints
  }
}
