import CSodium

/// The source of keys, nonces and tokens: the operating system, or a seed in simulations.
public struct Entropy: Sendable {
  private enum Source: Sendable {
    case system
    case seeded(UInt64, drawn: UInt64)
  }

  private var source: Source

  /// The operating system's generator (libsodium's `randombytes`, which calls `getrandom`).
  public static let system = Entropy(source: .system)

  /// A repeatable stream, for simulations and tests only. A copy continues with the same values, so
  /// every engine needs a separate fork.
  public static func seeded(_ seed: UInt64) -> Entropy {
    Entropy(source: .seeded(seed, drawn: 0))
  }

  /// An independent source for another part of the same node.
  public mutating func fork() -> Entropy {
    switch source {
    case .system: .system
    case .seeded: .seeded(u64())
    }
  }

  /// Draws `count` random bytes.
  public mutating func bytes(_ count: Int) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: count) { buffer, used in
      fill(UnsafeMutableRawBufferPointer(buffer).prefixed(count))
      used = count
    }
  }

  /// Draws 64 random bits.
  public mutating func u64() -> UInt64 {
    var value: UInt64 = 0
    withUnsafeMutableBytes(of: &value) { fill($0) }
    return UInt64(littleEndian: value)
  }

  /// Draws 32 random bits.
  public mutating func u32() -> UInt32 { UInt32(truncatingIfNeeded: u64()) }

  /// Draws random bytes directly into secret storage, without a copy elsewhere in memory.
  public mutating func secret(_ count: Int, in storage: SecretBytes.Storage) -> SecretBytes {
    SecretBytes(count, in: storage) { fill($0) }
  }

  private mutating func fill(_ target: UnsafeMutableRawBufferPointer) {
    precondition(Sodium.isReady)
    guard let base = target.baseAddress, target.count > 0 else { return }
    switch source {
    case .system: randombytes_buf(base, target.count)
    case .seeded(let seed, let drawn):
      // Every draw has a different 32-byte seed, so that draws of any length do not overlap.
      let key: (UInt64, UInt64, UInt64, UInt64) = (seed.littleEndian, drawn.littleEndian, 0, 0)
      withUnsafeBytes(of: key) { bytes in
        randombytes_buf_deterministic(base, target.count, bytes.start)
      }
      source = .seeded(seed, drawn: drawn &+ 1)
    }
  }
}

extension UnsafeMutableRawBufferPointer {
  func prefixed(_ count: Int) -> UnsafeMutableRawBufferPointer {
    UnsafeMutableRawBufferPointer(rebasing: self[0..<count])
  }
}
