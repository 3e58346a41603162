/// Extends 16-bit sequence numbers to 64 bits, which do not wrap.
public struct SequenceUnwrapper: Equatable, Sendable {
  /// The highest extended sequence number so far; nil before the first call of `unwrap`.
  public private(set) var highest: Int64?

  /// Creates an unwrapper that has seen no sequence number yet.
  public init() {}

  /// Returns the extended number nearest to the highest, without recording it.
  ///
  /// The first number is raised by 65,536, so that the numbers of reordered packets before the
  /// first packet stay positive.
  public func extended(_ sequence: UInt16) -> Int64 {
    guard let highest else { return 0x1_0000 + Int64(sequence) }
    let delta = Int16(bitPattern: sequence &- UInt16(truncatingIfNeeded: highest))
    return highest &+ Int64(delta)
  }

  /// Extends a number, and records the result if it is the highest so far.
  public mutating func unwrap(_ sequence: UInt16) -> Int64 {
    let result = extended(sequence)
    highest = max(highest ?? result, result)
    return result
  }
}
