import MusterBase
import MusterCrypto
import MusterWire

/// A cookie reply: `0x12 | receiver's index 4 | nonce 24 | sealed cookie 32` (lengths in bytes).
/// The reply asks the initiator to repeat its initiation with the cookie, which proves that the
/// initiator receives datagrams at its source address (WireGuard whitepaper section 5.4.7).
///
/// The cookie is sealed under a key of channel and responder, with the initiation's first MAC as
/// associated data: only the initiator, or a member that saw the initiation, can decrypt it.
struct CookieReply {
  static let bytes = 5 + 24 + CookieJar.cookieBytes + AEAD.tagBytes

  let receiverIndex: UInt32
  private let nonce: [UInt8]
  private let sealed: ArraySlice<UInt8>

  init?(_ datagram: [UInt8]) {
    guard datagram.count == Self.bytes else { return nil }
    var reader = Reader(datagram[1...])
    guard let index = try? reader.u32(), let nonce = try? reader.array(24) else { return nil }
    receiverIndex = index
    self.nonce = nonce
    sealed = reader.rest()
  }

  func cookie(mac1: [UInt8], key: SecretBytes) -> [UInt8]? {
    AEAD.open(sealed, nonce: nonce, associatedData: mac1, key: key, with: .xChaChaPoly)
  }

  static func encode(
    receiverIndex: UInt32, cookie: [UInt8], mac1: ArraySlice<UInt8>, key: SecretBytes,
    nonce: [UInt8]
  ) -> [UInt8]? {
    let sealed = AEAD.seal(
      cookie, nonce: nonce, associatedData: Array(mac1), key: key, with: .xChaChaPoly)
    guard let sealed else { return nil }
    var writer = Writer(capacity: bytes)
    writer.u8(DatagramKind.cookieReply.rawValue)
    writer.u32(receiverIndex)
    writer.append(nonce)
    writer.append(sealed)
    return writer.bytes
  }
}

/// Creates and verifies cookies without state per peer. A cookie is a MAC of the sender's route
/// under a secret that is replaced every `lifetime`; the previous secret stays valid for another
/// `lifetime`.
struct CookieJar: Sendable {
  static let cookieBytes = 16

  private let lifetime: Duration
  private var secret: SecretBytes?
  private var previous: SecretBytes?
  private var madeAt = Instant.zero

  init(lifetime: Duration) { self.lifetime = lifetime }

  mutating func cookie(
    for route: Route, entropy: inout Entropy, at now: Instant
  ) -> [UInt8] {
    rotate(at: now)
    let secret = self.secret ?? entropy.secret(32, in: .heap)
    if self.secret == nil {
      self.secret = secret
      madeAt = now
    }
    return Self.cookie(for: route, secret)
  }

  /// Whether a message's second MAC was made with a cookie of this node for `route`.
  mutating func isValid(_ macs: ReceivedMACs, from route: Route, at now: Instant) -> Bool {
    rotate(at: now)
    for secret in [secret, previous] {
      guard let secret else { continue }
      if macs.mac2IsValid(cookie: Self.cookie(for: route, secret)) { return true }
    }
    return false
  }

  private mutating func rotate(at now: Instant) {
    guard now - madeAt >= lifetime else { return }
    previous = now - madeAt < lifetime + lifetime ? secret : nil
    secret = nil
    madeAt = now
  }

  private static func cookie(for route: Route, _ secret: SecretBytes) -> [UInt8] {
    var writer = Writer(capacity: 100)
    switch route {
    case .direct(let address): writer.address(address)
    case .relayed(let peer, let relay, let channel):
      // This input is longer than any address, so a cookie cannot be valid for both kinds of route.
      for key in [peer.key, relay.key, channel.hash] { writer.append(key) }
    }
    return Blake2b.mac(writer.bytes[...], key: secret, count: cookieBytes)
  }
}
