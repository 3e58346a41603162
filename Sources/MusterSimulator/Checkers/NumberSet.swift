/// A set of small numbers, stored as a bitmap.
struct NumberSet: Sendable {
  /// The exclusive upper bound of the numbers. No correct run reaches this bound, so a number at or
  /// above it is itself a fault.
  static let limit: UInt64 = 1 << 22

  private var words: [UInt64] = []

  init() {}

  func contains(_ number: UInt64) -> Bool {
    let word = Int(min(number, Self.limit) >> 6)
    return word < words.count && words[word] & UInt64(1) << (number & 63) != 0
  }

  /// Inserts a number; returns false if the set contains the number already or the number is not
  /// below `limit`.
  mutating func insert(_ number: UInt64) -> Bool {
    guard number < Self.limit else { return false }
    let word = Int(number >> 6)
    while words.count <= word { words.append(0) }
    let bit = UInt64(1) << (number & 63)
    guard words[word] & bit == 0 else { return false }
    words[word] |= bit
    return true
  }
}
