import MusterBase
import MusterCrypto

/// A Noise handshake with 25519, ChaChaPoly and BLAKE2b (revision 34, section 5.3).
///
/// The type is generic over the patterns in `Pattern`. Ephemeral keys are arguments, so that the
/// published test vectors run through production code. Because this is a value type, a message can
/// be read by a copy, so the original stays unchanged if the message does not verify.
public struct HandshakeState: Sendable {
  /// The supported patterns. Links use `ikPSK2`; `ik` shares its code and has published vectors.
  public enum Pattern: String, Sendable {
    case ik = "IK"
    case ikPSK2 = "IKpsk2"

    var messages: [[Token]] {
      switch self {
      case .ik: [[.e, .es, .s, .ss], [.e, .ee, .se]]
      case .ikPSK2: [[.e, .es, .s, .ss], [.e, .ee, .se, .psk]]
      }
    }

    /// Whether the pattern has a pre-shared key; ephemeral public keys are then also mixed into the
    /// chaining key (section 9.2).
    var hasPSK: Bool { self == .ikPSK2 }
  }

  enum Token { case e, s, ee, es, se, ss, psk }

  /// The role of this side in the handshake.
  public enum Role: Sendable { case initiator, responder }

  /// The transport keys that result from the handshake.
  public struct TransportKeys: Sendable {
    /// The key that encrypts outgoing datagrams.
    public let send: SecretBytes
    /// The key that decrypts incoming datagrams.
    public let receive: SecretBytes
  }

  private let pattern: Pattern
  private let role: Role
  private let staticKeys: X25519.KeyPair
  private let psk: SecretBytes?
  private var symmetric: SymmetricState
  private var ephemeral: X25519.KeyPair?
  private var remoteEphemeral: Bytes32?
  private var position = 0

  /// The remote static key: given to an initiator, received by a responder.
  public private(set) var remoteStatic: Bytes32?

  /// Creates the initial state. An initiator needs `remoteStatic`; a pattern with a pre-shared key
  /// needs a `psk` of 32 bytes.
  public init(
    _ pattern: Pattern, _ role: Role, prologue: [UInt8], staticKeys: X25519.KeyPair,
    remoteStatic: Bytes32? = nil, psk: SecretBytes? = nil
  ) {
    precondition((role == .initiator) == (remoteStatic != nil))
    precondition(pattern.hasPSK == (psk != nil))
    self.pattern = pattern
    self.role = role
    self.staticKeys = staticKeys
    self.remoteStatic = remoteStatic
    self.psk = psk
    symmetric = SymmetricState(protocolName: "Noise_\(pattern.rawValue)_25519_ChaChaPoly_BLAKE2b")
    symmetric.mixHash(prologue)
    // The pre-message of the IK pattern is the responder's static key.
    symmetric.mixHash((remoteStatic ?? staticKeys.publicKey).bytes)
  }

  /// The handshake hash, which uniquely identifies the session (section 11.2).
  public var hash: [UInt8] { symmetric.hash }

  /// Whether all messages of the pattern have been exchanged.
  public var isComplete: Bool { position == pattern.messages.count }

  /// Writes the next message; nil if it is the remote side's turn, or a Diffie-Hellman fails.
  public mutating func write(_ payload: [UInt8], ephemeral pair: X25519.KeyPair) -> [UInt8]? {
    guard let tokens = nextTokens(writing: true) else { return nil }
    var message: [UInt8] = []
    for token in tokens {
      switch token {
      case .e:
        ephemeral = pair
        message += pair.publicKey.bytes
        mixEphemeral(pair.publicKey.bytes)
      case .s:
        guard let sealed = symmetric.encryptAndHash(staticKeys.publicKey.bytes) else { return nil }
        message += sealed
      case .ee, .es, .se, .ss, .psk:
        guard mix(token) else { return nil }
      }
    }
    guard let sealed = symmetric.encryptAndHash(payload) else { return nil }
    position += 1
    return message + sealed
  }

  /// Reads the next message of the remote side and returns its payload; nil if the message does not
  /// verify, after which this state must be discarded.
  public mutating func read(_ message: ArraySlice<UInt8>) -> [UInt8]? {
    guard let tokens = nextTokens(writing: false) else { return nil }
    var rest = message
    for token in tokens {
      switch token {
      case .e:
        guard let key = Bytes32(rest.prefix(32)) else { return nil }
        rest = rest.dropFirst(32)
        remoteEphemeral = key
        mixEphemeral(key.bytes)
      case .s:
        let length = 32 + AEAD.tagBytes
        guard rest.count >= length,
          let opened = symmetric.decryptAndHash(rest.prefix(length)), let key = Bytes32(opened)
        else { return nil }
        rest = rest.dropFirst(length)
        remoteStatic = key
      case .ee, .es, .se, .ss, .psk:
        guard mix(token) else { return nil }
      }
    }
    guard let payload = symmetric.decryptAndHash(rest) else { return nil }
    position += 1
    return payload
  }

  /// The transport keys; requires `isComplete`.
  public func split() -> TransportKeys {
    precondition(isComplete)
    let (initiator, responder) = symmetric.split()
    return role == .initiator
      ? TransportKeys(send: initiator, receive: responder)
      : TransportKeys(send: responder, receive: initiator)
  }

  /// The tokens of the next message; nil if it is not this side's turn. Messages are numbered from
  /// 0, and the initiator sends the even-numbered messages.
  private func nextTokens(writing: Bool) -> [Token]? {
    guard !isComplete, (position % 2 == 0) == ((role == .initiator) == writing) else { return nil }
    return pattern.messages[position]
  }

  private mutating func mixEphemeral(_ key: [UInt8]) {
    symmetric.mixHash(key)
    if pattern.hasPSK { key.withUnsafeBytes { symmetric.mixKey($0) } }
  }

  /// Mixes in the result of one Diffie-Hellman (the first letter is the initiator's key) or the
  /// pre-shared key.
  private mutating func mix(_ token: Token) -> Bool {
    if token == .psk {
      guard let psk else { return false }
      symmetric.mixKeyAndHash(psk)
      return true
    }
    let mineIsEphemeral = token == .ee || token == (role == .initiator ? .es : .se)
    let theirsIsEphemeral = token == .ee || token == (role == .initiator ? .se : .es)
    let mine = mineIsEphemeral ? ephemeral?.secret : staticKeys.secret
    let theirs = theirsIsEphemeral ? remoteEphemeral : remoteStatic
    guard let mine, let theirs, let secret = X25519.shared(mine, theirs) else { return false }
    symmetric.mixKey(secret)
    return true
  }
}
