/// Turns 16-bit sequence numbers into ones that never wrap.
public struct SequenceUnwrapper: Equatable, Sendable {
  /// The highest seen, extended; nil before the first.
  public private(set) var highest: Int64?

  public init() {}

  /// The number extended to whatever is nearest to the highest, without taking note of it.
  ///
  /// The first becomes itself plus 65,536, so that the ones before it stay positive.
  public func extended(_ sequence: UInt16) -> Int64 {
    guard let highest else { return 0x1_0000 + Int64(sequence) }
    let delta = Int16(bitPattern: sequence &- UInt16(truncatingIfNeeded: highest))
    return highest &+ Int64(delta)
  }

  public mutating func unwrap(_ sequence: UInt16) -> Int64 {
    let result = extended(sequence)
    highest = max(highest ?? result, result)
    return result
  }
}
