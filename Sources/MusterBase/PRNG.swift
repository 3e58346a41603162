/// A seeded, repeatable generator: xoshiro256** (Blackman and Vigna, 2018), seeded by SplitMix64.
///
/// The generator is only for values that need not be secret, such as jitter, RTP sequence numbers
/// and simulated faults; keys and nonces come from `Entropy` in MusterCrypto. The generator
/// implements `below(_:)` itself, because the algorithms of the standard library may change, and
/// with them the meaning of every recorded seed.
public struct PRNG: Sendable {
  private var s: (UInt64, UInt64, UInt64, UInt64)

  /// Expands the seed by SplitMix64, as the authors of xoshiro recommend.
  public init(seed: UInt64) {
    var x = seed
    func splitMix() -> UInt64 {
      x &+= 0x9E37_79B9_7F4A_7C15
      var z = x
      z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
      z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
      return z ^ (z >> 31)
    }
    s = (splitMix(), splitMix(), splitMix(), splitMix())
  }

  /// Draws 64 uniform bits.
  public mutating func next() -> UInt64 {
    let result = Self.rotateLeft(s.1 &* 5, 7) &* 9
    let t = s.1 << 17
    s.2 ^= s.0
    s.3 ^= s.1
    s.1 ^= s.2
    s.0 ^= s.3
    s.2 ^= t
    s.3 = Self.rotateLeft(s.3, 45)
    return result
  }

  /// Draws a uniform integer in `0..<bound`; `bound` must be positive. Lemire's multiplication is
  /// used without rejection: the bias is at most `bound / 2^64`.
  public mutating func below(_ bound: Int) -> Int {
    precondition(bound > 0)
    return Int(next().multipliedFullWidth(by: UInt64(bound)).high)
  }

  /// Draws a uniform number in `0..<1`.
  public mutating func unit() -> Double { Double(next() >> 11) * 0x1p-53 }

  /// Returns true with the given probability, 0 to 1.
  public mutating func chance(_ probability: Double) -> Bool { unit() < probability }

  /// Draws `count` uniform bytes, with one generator step for each.
  public mutating func bytes(_ count: Int) -> [UInt8] {
    (0..<count).map { _ in UInt8(truncatingIfNeeded: next() >> 32) }
  }

  /// Scales a duration by a uniform factor in `1 - fraction ..< 1 + fraction`.
  public mutating func jittered(_ duration: Duration, by fraction: Double) -> Duration {
    let factor = 1 + fraction * (2 * unit() - 1)
    return .nanoseconds(Int64(Double(duration.wholeNanoseconds) * factor))
  }

  private static func rotateLeft(_ x: UInt64, _ k: UInt64) -> UInt64 { (x << k) | (x >> (64 - k)) }
}
