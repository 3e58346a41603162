import MusterBase

/// A claim to the role of initiator of a call, as a lease with terms: term 1 starts a call; each
/// later term is a hand-over from an initiator that became unreachable.
///
/// Layout in bytes: call id 16, term 4, start time 8, order 8.
public struct CallClaim: Equatable, Sendable {
  /// The id of the call, the same in all its claims.
  public var call: CallID
  /// The term, counted from 1.
  public var term: UInt32
  /// The start of the call in milliseconds since 1970, by the first initiator's wall clock; for
  /// display only.
  public var startedAt: UInt64
  /// The Lamport counter of the call's first claim; of concurrent calls, the call with the smallest
  /// counter continues. A claim for term 1 has the counter in its entry, and 0 here.
  public var order: UInt64

  /// `order` is 0 in a claim for term 1, whose entry carries the counter.
  public init(call: CallID, term: UInt32, startedAt: UInt64, order: UInt64) {
    self.call = call
    self.term = term
    self.startedAt = startedAt
    self.order = order
  }

  func write(to writer: inout Writer) {
    writer.callID(call)
    writer.u32(term)
    writer.u64(startedAt)
    writer.u64(order)
  }

  init(reading reader: inout Reader) throws(WireError) {
    call = try reader.callID()
    term = try reader.u32()
    guard term > 0 else { throw .invalidValue }
    startedAt = try reader.u64()
    order = try reader.u64()
  }
}

/// The end of a call, which covers the author's own claim for this term and all claims for earlier
/// terms.
///
/// Layout in bytes: call id 16, term 4.
public struct CallEnd: Equatable, Sendable {
  /// The id of the call whose claims end.
  public var call: CallID
  /// The highest term whose claims end.
  public var term: UInt32

  /// Ends the claims to `call` up to `term`.
  public init(call: CallID, term: UInt32) {
    self.call = call
    self.term = term
  }

  func write(to writer: inout Writer) {
    writer.callID(call)
    writer.u32(term)
  }

  init(reading reader: inout Reader) throws(WireError) {
    call = try reader.callID()
    term = try reader.u32()
  }
}
