import Glibc

/// How loud a piece of audio is.
public enum AudioLevel {
  /// Silence, and the least the format of RFC 6464 can say.
  public static let silence: UInt8 = 127

  /// The level in -dBov as RFC 6464 has it, computed as RFC 6465 appendix A does: 0 is a square
  /// wave of full scale, 127 is silence.
  public static func dBov(_ pcm: [Int16]) -> UInt8 {
    guard !pcm.isEmpty else { return silence }
    var sum: Int64 = 0
    for sample in pcm { sum &+= Int64(sample) * Int64(sample) }
    let rms = (Double(sum) / Double(pcm.count)).squareRoot() / 32768
    guard rms > 0 else { return silence }
    let level = -20 * log10(rms)
    return UInt8(min(max(level.rounded(), 0), Double(silence)))
  }
}
