import MusterBase

/// "I am the initiator of this call from this term on": term 1 starts a call, a later one takes it
/// over from an initiator who has vanished.
///
/// Layout: call id 16, term 4, started at 8, order 8.
public struct CallClaim: Equatable, Sendable {
  public var call: CallID
  public var term: UInt32
  /// Milliseconds since 1970 by the first initiator's wall clock; for display only.
  public var startedAt: UInt64
  /// The Lamport counter of the call's first claim: of concurrent calls the smallest stays. A claim
  /// of term 1 has it in its entry, and 0 here.
  public var order: UInt64

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

/// "This call is over": covers the author's own claim of that term, and every claim of a term
/// before.
///
/// Layout: call id 16, term 4.
public struct CallEnd: Equatable, Sendable {
  public var call: CallID
  public var term: UInt32

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
