import MusterSystem

/// The computation of the audio level of a packet (RFC 6464).
public enum AudioLevel {
  /// Digital silence in -dBov, the lowest level that RFC 6464 can express.
  public static let silence: UInt8 = 127

  /// The level in -dBov, computed as in RFC 6465 appendix A: 0 is a full-scale square wave, 127 is
  /// silence. An empty input also yields 127.
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
