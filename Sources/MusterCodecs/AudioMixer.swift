/// Mixes any number of decoded audio streams into one, with a soft limiter.
public struct AudioMixer: Sendable {
  /// Sums up to this magnitude (-2.5 dBFS) pass unchanged. Above it the gain falls smoothly towards
  /// full scale: hard clipping at the same level is audible as distortion.
  public static let knee: Int32 = 24_576

  /// A mixer; it keeps no state between calls.
  public init() {}

  /// The sum of all inputs, as long as the longest; a single input is returned bit for bit.
  public func mix(_ inputs: [[Int16]]) -> [Int16] {
    if inputs.count == 1 { return inputs[0] }
    var sums = [Int32](repeating: 0, count: inputs.map(\.count).max() ?? 0)
    for input in inputs {
      for index in input.indices { sums[index] &+= Int32(input[index]) }
    }
    return sums.map(Self.limited)
  }

  /// Slope 1 at the knee, approaching full scale without reaching it, so that no sum overflows.
  static func limited(_ sum: Int32) -> Int16 {
    let magnitude = Int64(sum.magnitude)
    guard magnitude > Int64(knee) else { return Int16(sum) }
    let room = Int64(Int16.max) - Int64(knee)
    let excess = magnitude - Int64(knee)
    let bent = Int64(knee) + room * excess / (room + excess)
    return Int16(sum < 0 ? -bent : bent)
  }
}
