import MusterBase

/// A claim to the role of initiator of a call, as a lease with terms: term 1 starts a call; each
/// later term is a hand-over from an initiator that became unreachable.
///
/// Layout in bytes: call id 16, term 4, start time 8, order 8, knowledge 1.
public struct CallClaim: Equatable, Sendable {
  /// The id of the call, the same in all its claims.
  public var call: CallID
  /// The term, counted from 1.
  public var term: UInt32
  /// The start of the call in milliseconds since 1970, by the first initiator's wall clock; for
  /// display only.
  public var startedAt: UInt64
  /// The Lamport counter of the call's first claim; of concurrent calls that are equally well
  /// established, the one with the smallest counter stays. A claim for term 1 has the counter in
  /// its entry, and 0 here.
  public var order: UInt64

  /// What the member that started the call knew of the channel then; the same in all claims of the
  /// call.
  public var knowledge: Knowledge

  /// What the member that started a call knew of the channel.
  public enum Knowledge: UInt8, Sendable {
    /// Nothing but its own entries: it had not compared documents with a neighbour.
    case none = 0
    /// What a neighbour knew.
    case compared = 1
  }

  /// `order` is 0 in a claim for term 1, whose entry carries the counter.
  public init(
    call: CallID, term: UInt32, startedAt: UInt64, order: UInt64, knowledge: Knowledge
  ) {
    self.call = call
    self.term = term
    self.startedAt = startedAt
    self.order = order
    self.knowledge = knowledge
  }

  func write(to writer: inout Writer) {
    writer.callID(call)
    writer.u32(term)
    writer.u64(startedAt)
    writer.u64(order)
    writer.u8(knowledge.rawValue)
  }

  init(reading reader: inout Reader) throws(WireError) {
    call = try reader.callID()
    term = try reader.u32()
    guard term > 0 else { throw .invalidValue }
    startedAt = try reader.u64()
    order = try reader.u64()
    // Claims of earlier versions end here, and later versions may distinguish more.
    guard !reader.isAtEnd else {
      knowledge = .none
      return
    }
    knowledge = try reader.u8() == 0 ? .none : .compared
  }
}

/// The author's statement that it has been in a call together with others, so that people are in
/// it. Unlike a presence, it outlives the process of its author.
///
/// Layout in bytes: call id 16, stage 1.
public struct CallJoining: Equatable, Sendable {
  /// How long the author has been in the call together with another participant.
  public enum Stage: UInt8, CaseIterable, Comparable, Sendable {
    /// For a moment: long enough for calls that were started at once to have been merged by then.
    case met = 1
    /// For a while.
    case lasting = 2

    /// The time after which an author says so.
    public var time: Duration { self == .met ? .seconds(1) : .seconds(10) }

    public static func < (a: Stage, b: Stage) -> Bool { a.rawValue < b.rawValue }
  }

  /// The id of the call.
  public var call: CallID
  /// How long the author has been in the call together with another participant.
  public var stage: Stage

  /// Describes how long the author has been in `call` together with another participant.
  public init(call: CallID, stage: Stage) {
    self.call = call
    self.stage = stage
  }

  func write(to writer: inout Writer) {
    writer.callID(call)
    writer.u8(stage.rawValue)
  }

  init(reading reader: inout Reader) throws(WireError) {
    call = try reader.callID()
    guard let stage = Stage(rawValue: try reader.u8()) else { throw .invalidValue }
    self.stage = stage
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
