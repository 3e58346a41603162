/// A seeded, repeatable generator: xoshiro256** by Blackman and Vigna, seeded through SplitMix64.
///
/// For jitter, test traffic and simulated faults only. Keys and nonces come from `Entropy` in
/// MusterCrypto, which this type cannot reach. Its own `below(_:)` rather than the standard
/// library's, whose algorithms may change and with them every recorded seed.
public struct PRNG: Sendable {
  private var s: (UInt64, UInt64, UInt64, UInt64)

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

  /// A uniform integer in `0..<bound`; `bound` must be positive.
  public mutating func below(_ bound: Int) -> Int {
    precondition(bound > 0)
    return Int(next().multipliedFullWidth(by: UInt64(bound)).high)
  }

  /// A uniform number in `0..<1`.
  public mutating func unit() -> Double { Double(next() >> 11) * 0x1p-53 }

  /// True with the given probability.
  public mutating func chance(_ probability: Double) -> Bool { unit() < probability }

  public mutating func bytes(_ count: Int) -> [UInt8] {
    (0..<count).map { _ in UInt8(truncatingIfNeeded: next() >> 32) }
  }

  /// A duration stretched or shrunk by up to `fraction` of itself.
  public mutating func jittered(_ duration: Duration, by fraction: Double) -> Duration {
    let factor = 1 + fraction * (2 * unit() - 1)
    return .nanoseconds(Int64(Double(duration.wholeNanoseconds) * factor))
  }

  private static func rotateLeft(_ x: UInt64, _ k: UInt64) -> UInt64 { (x << k) | (x >> (64 - k)) }
}
