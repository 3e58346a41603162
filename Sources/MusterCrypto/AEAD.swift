import CSodium

/// Authenticated encryption: ChaCha20-Poly1305 (RFC 8439) and its variant with extended nonces.
public enum AEAD {
  /// The length of the Poly1305 tag in bytes.
  public static let tagBytes = 16
  /// The length of a key in bytes.
  public static let keyBytes = 32

  /// The cipher, which determines the length of a nonce.
  public enum Algorithm: Sendable {
    /// ChaCha20-Poly1305 (RFC 8439) with a 12-byte nonce, which must be a counter: random nonces of
    /// this length could collide.
    case chaChaPoly
    /// XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha) with a 24-byte nonce, long enough to be random.
    case xChaChaPoly

    /// The length of a nonce in bytes.
    public var nonceBytes: Int {
      switch self {
      case .chaChaPoly: 12
      case .xChaChaPoly: 24
      }
    }
  }

  /// Encrypts a plaintext; returns ciphertext and tag, or nil if the nonce or the key has the wrong
  /// length.
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

  /// Decrypts ciphertext and tag; nil if the tag does not match or a length is wrong.
  public static func open(
    _ sealed: ArraySlice<UInt8>, nonce: [UInt8], associatedData: [UInt8], key: SecretBytes,
    with algorithm: Algorithm
  ) -> [UInt8]? {
    guard nonce.count == algorithm.nonceBytes, key.count == keyBytes, sealed.count >= tagBytes
    else { return nil }
    let length = sealed.count - tagBytes
    var isAuthentic = false
    // The buffer has one byte more than needed, so that libsodium gets a valid address for an empty
    // plaintext.
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
  /// Encrypts all but the last 16 bytes of `buffer` in place, and writes the tag into the last 16.
  ///
  /// The algorithm is ChaCha20-Poly1305 with Noise's nonce (revision 34, section 12.3): four zero
  /// bytes and the counter in little-endian order.
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

  /// Decrypts `sealed` into `output`, which may be 16 bytes shorter. Returns false if the tag does
  /// not match or a length is wrong; the content of `output` is then undefined.
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
