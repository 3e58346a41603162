import MusterBase
import MusterCrypto
import MusterWire

/// The header of a data datagram: `20 | receiver's index 4 | counter 8`, followed by ciphertext and
/// tag.
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

/// One pair of keys, with the counters that keep a nonce from being used twice.
struct Session: Sendable {
  /// 2^64 - 2^13 - 1, as in WireGuard: the replay window never wraps.
  static let counterLimit = UInt64.max - (1 << 13)

  let localIndex: UInt32
  let remoteIndex: UInt32
  let isInitiator: Bool
  /// Which run of the peer made it.
  let bootID: UInt64
  /// The route that the handshake took: a round trip proved it.
  let route: Route
  let createdAt: Instant

  private let keys: HandshakeState.TransportKeys
  private var nextCounter: UInt64 = 0
  private var window = ReplayWindow()

  init(
    keys: HandshakeState.TransportKeys, localIndex: UInt32, remoteIndex: UInt32, isInitiator: Bool,
    bootID: UInt64, route: Route, createdAt: Instant
  ) {
    self.keys = keys
    self.localIndex = localIndex
    self.remoteIndex = remoteIndex
    self.isInitiator = isInitiator
    self.bootID = bootID
    self.route = route
    self.createdAt = createdAt
  }

  /// Header and body as one sealed datagram, written once and encrypted where it lies; nil when the
  /// session's time or counters are used up.
  mutating func seal(
    _ header: [UInt8], _ body: ArraySlice<UInt8>, at now: Instant, _ lifetime: Duration
  ) -> (datagram: [UInt8], packetNumber: UInt64)? {
    guard now - createdAt < lifetime, nextCounter < Self.counterLimit else { return nil }
    let counter = nextCounter
    nextCounter += 1
    let total = DataHeader.bytes + header.count + body.count + AEAD.tagBytes
    let datagram = [UInt8](unsafeUninitializedCapacity: total) { buffer, used in
      let datagram = UnsafeMutableRawBufferPointer(
        rebasing: UnsafeMutableRawBufferPointer(buffer)[..<total])
      datagram[0] = DatagramKind.data.rawValue
      datagram.storeBytes(of: remoteIndex.bigEndian, toByteOffset: 1, as: UInt32.self)
      datagram.storeBytes(of: counter.bigEndian, toByteOffset: 5, as: UInt64.self)
      let text = UnsafeMutableRawBufferPointer(rebasing: datagram[DataHeader.bytes...])
      header.withUnsafeBytes { text.copyMemory(from: $0) }
      body.withUnsafeBytes {
        UnsafeMutableRawBufferPointer(rebasing: text[header.count...]).copyMemory(from: $0)
      }
      AEAD.sealInPlace(
        text, counter: counter,
        associatedData: UnsafeRawBufferPointer(rebasing: datagram[..<DataHeader.bytes]),
        key: keys.send)
      used = total
    }
    return (datagram, counter)
  }

  enum Opened {
    case expired, forged, replayed
    case payload([UInt8], isNewest: Bool)
  }

  /// Authenticates, then asks the window: a stranger can neither move it nor learn from it.
  mutating func open(
    _ datagram: [UInt8], _ counter: UInt64, at now: Instant, _ lifetime: Duration
  ) -> Opened {
    guard now - createdAt < lifetime else { return .expired }
    guard counter < Self.counterLimit, let payload = decrypt(datagram, counter) else {
      return .forged
    }
    guard window.accept(counter) else { return .replayed }
    return .payload(payload, isNewest: counter == window.highest)
  }

  /// The payload, decrypted straight out of the datagram into its own array.
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
