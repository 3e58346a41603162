/// A mixer for any number of decoded audio streams, with a soft limiter.
public struct AudioMixer: Sendable {
  /// The magnitude up to which sums pass unchanged (-2.5 dBFS). Larger sums are compressed smoothly
  /// towards full scale, because hard clipping is audible as distortion.
  public static let knee: Int32 = 24_576

  /// Creates a mixer, which keeps no state between calls.
  public init() {}

  /// The limited sum of all inputs, as long as the longest input; a single input is returned
  /// unchanged.
  public func mix(_ inputs: [[Int16]]) -> [Int16] {
    if inputs.count == 1 { return inputs[0] }
    var sums = [Int32](repeating: 0, count: inputs.map(\.count).max() ?? 0)
    for input in inputs {
      for index in input.indices { sums[index] &+= Int32(input[index]) }
    }
    return sums.map(Self.limited)
  }

  /// The limiter curve: slope 1 at the knee, and full scale as its asymptote, so that no sum
  /// overflows.
  static func limited(_ sum: Int32) -> Int16 {
    let magnitude = Int64(sum.magnitude)
    guard magnitude > Int64(knee) else { return Int16(sum) }
    let room = Int64(Int16.max) - Int64(knee)
    let excess = magnitude - Int64(knee)
    let bent = Int64(knee) + room * excess / (room + excess)
    return Int16(sum < 0 ? -bent : bent)
  }
}
