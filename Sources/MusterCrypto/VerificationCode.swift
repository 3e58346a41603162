import MusterBase

/// A short authentication string, which two members compare aloud to verify each other's keys.
public enum VerificationCode {
  /// The number of digits. 25 digits are 83 bits; with `iterations` hashes per attempt, finding a
  /// second key with the same code is infeasible.
  public static let digits = 25
  /// The number of hashes per code, which slow down a search for a colliding code (Signal's numeric
  /// fingerprints use 5,200).
  public static let iterations = 1 << 16

  /// The code as five groups of five digits, identical on both sides.
  public static func text(channel: ChannelID, _ a: NodeID, _ b: NodeID) -> String {
    let pair = [a, b].sorted()
    let start = pair[0].key.bytes + pair[1].key.bytes + channel.hash.bytes
    var hash = Blake2b.hash(Array("muster/1 verification".utf8) + start, count: 64)
    for _ in 0..<iterations { hash = Blake2b.hash(hash + start, count: 64) }
    var groups: [String] = []
    for group in 0..<digits / 5 {
      // 64 bits modulo 100,000 are sufficiently uniform: the bias is below one part in 10^14.
      let word = hash[group * 8..<group * 8 + 8].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
      groups.append(String(100_000 + word % 100_000).dropFirst().description)
    }
    return groups.joined(separator: " ")
  }
}
