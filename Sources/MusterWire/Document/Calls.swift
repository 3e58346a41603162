import MusterBase

/// Claims the role of initiator of a call, as a lease with terms: term 1 starts a call; each later
/// term is a hand-over from an initiator who became unreachable.
///
/// Layout: call id 16, term 4, started at 8, order 8.
public struct CallClaim: Equatable, Sendable {
  /// The call.
  public var call: CallID
  /// The term, from 1.
  public var term: UInt32
  /// Milliseconds since 1970 on the first initiator's wall clock; for display only.
  public var startedAt: UInt64
  /// Lamport counter of the call's first claim: of concurrent calls the one with the smallest
  /// stays. Claims of term 1 carry it in their entry and 0 here.
  public var order: UInt64

  /// `order` is 0 in a claim of term 1, whose entry carries the counter.
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

/// Ends a call: covers the author's own claim of this term, and all claims of earlier terms.
///
/// Layout: call id 16, term 4.
public struct CallEnd: Equatable, Sendable {
  /// The call.
  public var call: CallID
  /// The term up to which the end counts.
  public var term: UInt32

  /// Ends the claims of `call` up to `term`.
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
