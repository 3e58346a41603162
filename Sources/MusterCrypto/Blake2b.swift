import CSodium

/// The hash function BLAKE2b (RFC 7693), plain and keyed.
public enum Blake2b {
  /// The length of a block in bytes, to which HMAC pads its key.
  static let blockBytes = 128
  /// The maximum output length in bytes; Noise uses this length (HASHLEN).
  public static let hashBytes = 64

  /// The unkeyed hash of `count` bytes, 16 to 64.
  public static func hash(_ message: [UInt8], count: Int = 32) -> [UInt8] {
    precondition(Sodium.isReady && (16...64).contains(count))
    return [UInt8](unsafeUninitializedCapacity: count) { output, used in
      let code = crypto_generichash_blake2b(
        UnsafeMutableRawBufferPointer(output).start, count, message, UInt64(message.count), nil, 0)
      precondition(code == 0)  // fails for wrong sizes only
      used = count
    }
  }

  /// The keyed hash, used as a MAC; `count` and the key's length are 16 to 64 bytes.
  public static func mac(_ message: ArraySlice<UInt8>, key: SecretBytes, count: Int) -> [UInt8] {
    precondition((16...64).contains(count) && (16...64).contains(key.count))
    return [UInt8](unsafeUninitializedCapacity: count) { output, used in
      message.withUnsafeBytes { message in
        key.withUnsafeBytes { key in
          keyed(UnsafeMutableRawBufferPointer(output).prefixed(count), message, key)
        }
      }
      used = count
    }
  }

  /// Derives a 32-byte key: the keyed hash of a label and a context. Distinct labels give
  /// independent keys.
  public static func derive(
    _ label: String, _ context: [UInt8] = [], from key: SecretBytes,
    in storage: SecretBytes.Storage
  ) -> SecretBytes {
    let message = Array(label.utf8) + context
    return SecretBytes(32, in: storage) { output in
      message.withUnsafeBytes { message in
        key.withUnsafeBytes { keyed(output, message, $0) }
      }
    }
  }

  private static func keyed(
    _ output: UnsafeMutableRawBufferPointer, _ message: UnsafeRawBufferPointer,
    _ key: UnsafeRawBufferPointer
  ) {
    let code = crypto_generichash_blake2b(
      output.start, output.count, message.bytes, UInt64(message.count), key.bytes, key.count)
    precondition(code == 0)  // fails for wrong sizes only
  }

  /// The unkeyed 64-byte hash of raw memory.
  static func raw(_ message: UnsafeRawBufferPointer, into output: UnsafeMutablePointer<UInt8>) {
    let code = crypto_generichash_blake2b(
      output, hashBytes, message.bytes,
      UInt64(message.count), nil, 0)
    precondition(code == 0)  // fails for wrong sizes only
  }
}

extension UnsafeRawBufferPointer {
  /// The base address as C expects it; nil for an empty buffer.
  var bytes: UnsafePointer<UInt8>? { baseAddress?.assumingMemoryBound(to: UInt8.self) }

  /// The base address of a buffer that must not be empty.
  var start: UnsafePointer<UInt8> {
    guard let bytes else { preconditionFailure("an empty secret") }
    return bytes
  }
}

extension UnsafeMutableRawBufferPointer {
  var bytes: UnsafeMutablePointer<UInt8>? { baseAddress?.assumingMemoryBound(to: UInt8.self) }

  var start: UnsafeMutablePointer<UInt8> {
    guard let bytes else { preconditionFailure("an empty secret") }
    return bytes
  }
}
