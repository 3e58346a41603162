import CSodium

/// Encryption that also authenticates: ChaCha20-Poly1305 (RFC 8439) and its form with long nonces.
public enum AEAD {
  public static let tagBytes = 16
  public static let keyBytes = 32

  /// Which of the two.
  public enum Algorithm: Sendable {
    /// Nonce of 12 bytes: a counter.
    case chaChaPoly
    /// Nonce of 24 bytes: may be random.
    case xChaChaPoly

    public var nonceBytes: Int {
      switch self {
      case .chaChaPoly: 12
      case .xChaChaPoly: 24
      }
    }
  }

  /// Ciphertext and tag; nil when the nonce has the wrong length.
  public static func seal(
    _ plaintext: [UInt8], nonce: [UInt8], associatedData: [UInt8], key: SecretBytes,
    with algorithm: Algorithm
  ) -> [UInt8]? {
    guard nonce.count == algorithm.nonceBytes, key.count == keyBytes else { return nil }
    let total = plaintext.count + tagBytes
    return [UInt8](unsafeUninitializedCapacity: total) { output, used in
      let function =
        algorithm == .chaChaPoly
        ? crypto_aead_chacha20poly1305_ietf_encrypt : crypto_aead_xchacha20poly1305_ietf_encrypt
      let code = key.withUnsafeBytes {
        function(
          UnsafeMutableRawBufferPointer(output).start, nil, plaintext, UInt64(plaintext.count),
          associatedData,
          UInt64(associatedData.count), nil, nonce, $0.start)
      }
      precondition(code == 0)
      used = total
    }
  }

  /// The plaintext; nil for anything that was not sealed so.
  public static func open(
    _ sealed: ArraySlice<UInt8>, nonce: [UInt8], associatedData: [UInt8], key: SecretBytes,
    with algorithm: Algorithm
  ) -> [UInt8]? {
    guard nonce.count == algorithm.nonceBytes, key.count == keyBytes, sealed.count >= tagBytes
    else { return nil }
    let length = sealed.count - tagBytes
    var isAuthentic = false
    // One byte more, so that there is an address to write nothing to.
    let plaintext = [UInt8](unsafeUninitializedCapacity: length + 1) { output, used in
      let function =
        algorithm == .chaChaPoly
        ? crypto_aead_chacha20poly1305_ietf_decrypt : crypto_aead_xchacha20poly1305_ietf_decrypt
      isAuthentic = sealed.withUnsafeBytes { sealed in
        key.withUnsafeBytes { key in
          function(
            output.baseAddress, nil, nil, sealed.start, UInt64(sealed.count), associatedData,
            UInt64(associatedData.count), nonce, key.start) == 0
        }
      }
      used = isAuthentic ? length : 0
    }
    return isAuthentic ? plaintext : nil
  }
}

extension AEAD {
  /// Encrypts in place what stands before the last 16 bytes of `buffer`, and writes the tag there.
  ///
  /// ChaCha20-Poly1305 under Noise's nonce: four zero bytes and the counter in little-endian order.
  public static func sealInPlace(
    _ buffer: UnsafeMutableRawBufferPointer, counter: UInt64,
    associatedData: UnsafeRawBufferPointer, key: SecretBytes
  ) {
    precondition(buffer.count >= tagBytes && key.count == keyBytes)
    let code = withNonce(counter) { nonce in
      key.withUnsafeBytes { key in
        crypto_aead_chacha20poly1305_ietf_encrypt(
          buffer.start, nil, buffer.start, UInt64(buffer.count - tagBytes), associatedData.bytes,
          UInt64(associatedData.count), nil, nonce, key.start)
      }
    }
    precondition(code == 0)
  }

  /// Decrypts `sealed` into `output`, which holds 16 bytes less; false, and nothing to be read from
  /// `output`, when the tag is wrong.
  public static func open(
    _ sealed: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer,
    counter: UInt64, associatedData: UnsafeRawBufferPointer, key: SecretBytes
  ) -> Bool {
    guard sealed.count >= tagBytes, output.count >= sealed.count - tagBytes,
      key.count == keyBytes
    else { return false }
    return withNonce(counter) { nonce in
      key.withUnsafeBytes { key in
        crypto_aead_chacha20poly1305_ietf_decrypt(
          output.bytes, nil, nil, sealed.start, UInt64(sealed.count), associatedData.bytes,
          UInt64(associatedData.count), nonce, key.start) == 0
      }
    }
  }

  private static func withNonce<R>(
    _ counter: UInt64, _ body: (UnsafePointer<UInt8>) -> R
  ) -> R {
    let nonce = (
      UInt32(0), UInt32(truncatingIfNeeded: counter).littleEndian,
      UInt32(truncatingIfNeeded: counter >> 32).littleEndian
    )
    return withUnsafeBytes(of: nonce) { body($0.start) }
  }
}
