import CSodium

/// HKDF with HMAC-BLAKE2b-512, the key derivation of the Noise framework (revision 34, section
/// 4.3).
public enum HKDF {
  /// Derives two or three 64-byte secrets from a chaining key and new input key material.
  public static func expand(
    chainingKey: SecretBytes, input: UnsafeRawBufferPointer, outputs count: Int
  ) -> [SecretBytes] {
    precondition(count == 2 || count == 3)
    let master = chainingKey.withUnsafeBytes { hmac(key: $0, input) }
    var outputs: [SecretBytes] = []
    for number in 1...UInt8(count) {
      // HMAC(master, previous output || number)
      let previous = outputs.last
      let length = (previous?.count ?? 0) + 1
      outputs.append(
        withUnsafeTemporaryAllocation(byteCount: length, alignment: 16) { message in
          previous?.withUnsafeBytes { message.copyMemory(from: $0) }
          message[length - 1] = number
          defer { sodium_memzero(message.baseAddress, length) }
          return master.withUnsafeBytes { hmac(key: $0, UnsafeRawBufferPointer(message)) }
        })
    }
    return outputs
  }

  /// HMAC (RFC 2104) with BLAKE2b-512; the key must not exceed one block of 128 bytes.
  public static func hmac(
    key: UnsafeRawBufferPointer, _ message: UnsafeRawBufferPointer
  ) -> SecretBytes {
    precondition(key.count <= Blake2b.blockBytes)
    return SecretBytes(Blake2b.hashBytes, in: .heap) { output in
      padded(key, with: 0x36, room: message.count) { block in
        let tail = UnsafeMutableRawBufferPointer(rebasing: block[Blake2b.blockBytes...])
        if message.count > 0 { tail.copyMemory(from: message) }
        Blake2b.raw(UnsafeRawBufferPointer(block), into: output.start)
      }
      padded(key, with: 0x5C, room: Blake2b.hashBytes) { block in
        let tail = UnsafeMutableRawBufferPointer(rebasing: block[Blake2b.blockBytes...])
        tail.copyMemory(from: UnsafeRawBufferPointer(output))
        Blake2b.raw(UnsafeRawBufferPointer(block), into: output.start)
      }
    }
  }

  /// Calls `body` with a block of the padded key followed by `room` bytes, and wipes both
  /// afterwards.
  private static func padded(
    _ key: UnsafeRawBufferPointer, with pad: UInt8, room: Int,
    _ body: (UnsafeMutableRawBufferPointer) -> Void
  ) {
    let length = Blake2b.blockBytes + room
    withUnsafeTemporaryAllocation(byteCount: length, alignment: 16) { block in
      for index in 0..<Blake2b.blockBytes {
        block[index] = (index < key.count ? key[index] : 0) ^ pad
      }
      body(block)
      sodium_memzero(block.baseAddress, length)
    }
  }
}
