import CSodium

/// The BLAKE2b hash (RFC 7693).
public enum Blake2b {
  /// The block, which HMAC pads its key to.
  static let blockBytes = 128
  /// The output that Noise uses.
  public static let hashBytes = 64

  /// A hash of 16 to 64 bytes.
  public static func hash(_ message: [UInt8], count: Int = 32) -> [UInt8] {
    precondition(Sodium.isReady && (16...64).contains(count))
    return [UInt8](unsafeUninitializedCapacity: count) { output, used in
      let code = crypto_generichash_blake2b(
        UnsafeMutableRawBufferPointer(output).start, count, message, UInt64(message.count), nil, 0)
      precondition(code == 0)  // fails for wrong sizes only
      used = count
    }
  }

  /// A keyed hash (MAC) of 16 to 64 bytes.
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

  /// A keyed hash as a secret of 32 bytes: how every key is derived from another, by its label.
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

  /// The unkeyed 64-byte hash over raw memory.
  static func raw(_ message: UnsafeRawBufferPointer, into output: UnsafeMutablePointer<UInt8>) {
    let code = crypto_generichash_blake2b(
      output, hashBytes, message.bytes,
      UInt64(message.count), nil, 0)
    precondition(code == 0)  // fails for wrong sizes only
  }
}

extension UnsafeRawBufferPointer {
  /// The address as C takes it; nil when there are no bytes.
  var bytes: UnsafePointer<UInt8>? { baseAddress?.assumingMemoryBound(to: UInt8.self) }

  /// The address of bytes that are there.
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
