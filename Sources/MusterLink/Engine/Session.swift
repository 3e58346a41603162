import MusterBase
import MusterCrypto
import MusterWire

/// The header of a transport packet: `0x20 | receiver's index 4 | counter 8` (lengths in bytes);
/// ciphertext and tag follow.
struct DataHeader {
  static let bytes = 13

  let receiverIndex: UInt32
  let counter: UInt64

  init?(_ datagram: [UInt8]) {
    guard datagram.count >= Self.bytes + AEAD.tagBytes else { return nil }
    (receiverIndex, counter) = datagram.withUnsafeBytes {
      (
        UInt32(bigEndian: $0.loadUnaligned(fromByteOffset: 1, as: UInt32.self)),
        UInt64(bigEndian: $0.loadUnaligned(fromByteOffset: 5, as: UInt64.self))
      )
    }
  }
}

/// The transport keys of one session, with counters that never repeat a nonce.
struct Session: Sendable {
  /// The highest packet counter, 2^64 - 2^13 - 1 as in WireGuard (whitepaper section 6.1), so
  /// that the replay window cannot wrap around.
  static let counterLimit = UInt64.max - (1 << 13)

  let localIndex: UInt32
  let remoteIndex: UInt32
  let isInitiator: Bool
  /// The run of the peer that established the session.
  let bootID: UInt64
  /// The capabilities that both ends offered.
  let capabilities: LinkCapabilities
  /// The route of the handshake, validated by the handshake's round trip.
  let route: Route
  let createdAt: Instant

  private let keys: HandshakeState.TransportKeys
  private var nextCounter: UInt64 = 0
  private var window = ReplayWindow()

  init(
    keys: HandshakeState.TransportKeys, localIndex: UInt32, remoteIndex: UInt32, isInitiator: Bool,
    bootID: UInt64, capabilities: LinkCapabilities, route: Route, createdAt: Instant
  ) {
    self.keys = keys
    self.localIndex = localIndex
    self.remoteIndex = remoteIndex
    self.isInitiator = isInitiator
    self.bootID = bootID
    self.capabilities = capabilities
    self.route = route
    self.createdAt = createdAt
  }

  /// Seals a payload into one datagram, encrypted in place; nil if the session has expired or its
  /// counters are exhausted.
  mutating func seal(
    _ payload: OutgoingPayload, over route: Route, at now: Instant, _ lifetime: Duration
  ) -> SealedDatagram? {
    guard now - createdAt < lifetime, nextCounter < Self.counterLimit else { return nil }
    let counter = nextCounter
    nextCounter += 1
    let total = DataHeader.bytes + payload.count + AEAD.tagBytes
    let datagram = [UInt8](unsafeUninitializedCapacity: total) { buffer, used in
      let datagram = UnsafeMutableRawBufferPointer(
        rebasing: UnsafeMutableRawBufferPointer(buffer)[..<total])
      datagram[0] = DatagramKind.data.rawValue
      datagram.storeBytes(of: remoteIndex.bigEndian, toByteOffset: 1, as: UInt32.self)
      datagram.storeBytes(of: counter.bigEndian, toByteOffset: 5, as: UInt64.self)
      let text = UnsafeMutableRawBufferPointer(rebasing: datagram[DataHeader.bytes...])
      payload.write(into: text)
      AEAD.sealInPlace(
        text, counter: counter,
        associatedData: UnsafeRawBufferPointer(rebasing: datagram[..<DataHeader.bytes]),
        key: keys.send)
      used = total
    }
    return SealedDatagram(
      datagram: datagram, route: route, session: remoteIndex, packetNumber: counter,
      capabilities: capabilities)
  }

  enum Opened {
    case expired, forged, replayed
    case payload([UInt8], LinkCapabilities, isNewest: Bool)
  }

  /// Opens a datagram. Authentication comes before the replay window is updated, so that forged
  /// datagrams neither move nor probe the window.
  mutating func open(
    _ datagram: [UInt8], _ counter: UInt64, at now: Instant, _ lifetime: Duration
  ) -> Opened {
    guard now - createdAt < lifetime else { return .expired }
    guard counter < Self.counterLimit, let payload = decrypt(datagram, counter) else {
      return .forged
    }
    guard window.accept(counter) else { return .replayed }
    return .payload(payload, capabilities, isNewest: counter == window.highest)
  }

  /// Decrypts from the datagram directly into the payload's array.
  private func decrypt(_ datagram: [UInt8], _ counter: UInt64) -> [UInt8]? {
    let length = datagram.count - DataHeader.bytes - AEAD.tagBytes
    guard length >= 0 else { return nil }
    var isAuthentic = false
    let payload = [UInt8](unsafeUninitializedCapacity: length) { buffer, used in
      isAuthentic = datagram.withUnsafeBytes { bytes in
        AEAD.open(
          UnsafeRawBufferPointer(rebasing: bytes[DataHeader.bytes...]),
          into: UnsafeMutableRawBufferPointer(buffer), counter: counter,
          associatedData: UnsafeRawBufferPointer(rebasing: bytes[..<DataHeader.bytes]),
          key: keys.receive)
      }
      used = isAuthentic ? length : 0
    }
    return isAuthentic ? payload : nil
  }

  func isUsable(at now: Instant, _ configuration: LinkEngine.Configuration) -> Bool {
    now - createdAt < configuration.rejectAfter
  }

  func rekeyAt(_ configuration: LinkEngine.Configuration) -> Instant {
    createdAt
      + (isInitiator ? configuration.rekeyAfter : configuration.rekeyAsResponderAfter)
  }
}
