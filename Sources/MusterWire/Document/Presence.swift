import MusterBase

/// A member's state as it announces it to the channel; of an author's presences the newest counts.
///
/// Layout: boot id 8, flags 2, name length 1 and UTF-8; if in a call: call id 16, joined 8; count
/// of streams 1 and each `StreamOffer` in rising order of its number.
public struct Presence: Equatable, Sendable {
  /// Drawn anew by every process of the author.
  public var bootID: UInt64
  public var flags: MemberFlags
  public var name: String
  public var call: Participation?
  /// The video streams on offer, in rising order.
  public var streams: [StreamOffer]

  public init(
    bootID: UInt64, flags: MemberFlags, name: String, call: Participation?,
    streams: [StreamOffer]
  ) {
    self.bootID = bootID
    self.flags = flags
    self.name = name
    self.call = call
    self.streams = streams
  }

  private static let knownFlags: MemberFlags = [
    .audioMuted, .videoMuted, .speaking, .sharing, .left, .audio, .declinesRelaying,
    .relaysMuch,
  ]
  private static let hasCall: UInt16 = 1 << 15

  func write(to writer: inout Writer) {
    precondition(streams.count <= Limits.videoStreams && name.utf8.count <= Limits.nameBytes)
    writer.u64(bootID)
    let bits = flags.intersection(Self.knownFlags).rawValue
    writer.u16(bits | (call == nil ? 0 : Self.hasCall))
    writer.text(name)
    if let call {
      writer.callID(call.id)
      writer.u64(call.joined)
    }
    writer.u8(UInt8(streams.count))
    for stream in streams { stream.write(to: &writer) }
  }

  init(reading reader: inout Reader) throws(WireError) {
    bootID = try reader.u64()
    let bits = try reader.u16()
    flags = MemberFlags(rawValue: bits).intersection(Self.knownFlags)
    name = try reader.text(limit: Limits.nameBytes)
    call =
      bits & Self.hasCall == 0
      ? nil : Participation(id: try reader.callID(), joined: try reader.u64())
    let count = Int(try reader.u8())
    guard count <= Limits.videoStreams else { throw .tooLong }
    streams = []
    for _ in 0..<count {
      let stream = try StreamOffer(reading: &reader)
      if let last = streams.last, stream.id <= last.id { throw .invalidValue }
      streams.append(stream)
    }
  }
}

/// A member's being in a call.
public struct Participation: Equatable, Hashable, Sendable {
  public var id: CallID
  /// The member's Lamport counter when it came in: who has been there longest has the smallest.
  public var joined: UInt64

  public init(id: CallID, joined: UInt64) {
    self.id = id
    self.joined = joined
  }
}

/// The yes-or-no parts of a member's state.
public struct MemberFlags: OptionSet, Sendable, Hashable {
  public let rawValue: UInt16

  public init(rawValue: UInt16) { self.rawValue = rawValue }

  /// Never sent: it follows from the call that a presence names.
  public static let inCall = MemberFlags(rawValue: 1 << 0)
  public static let audioMuted = MemberFlags(rawValue: 1 << 1)
  /// The camera is switched off.
  public static let videoMuted = MemberFlags(rawValue: 1 << 2)
  public static let speaking = MemberFlags(rawValue: 1 << 3)
  /// The member offers `StreamID.screen`.
  public static let sharing = MemberFlags(rawValue: 1 << 4)
  /// The member leaves the channel: its last word.
  public static let left = MemberFlags(rawValue: 1 << 5)
  /// The member has a source of sound.
  public static let audio = MemberFlags(rawValue: 1 << 7)
  /// The member passes on nothing for others.
  public static let declinesRelaying = MemberFlags(rawValue: 1 << 8)
  /// The member passes on so much already that others are to be preferred.
  public static let relaysMuch = MemberFlags(rawValue: 1 << 9)
}

/// Whom a member hears over links of its own; of an author's hearings the newest counts.
///
/// Layout: boot id 8, count 1 and the first 8 bytes of each id heard, count 1 and those of the ones
/// among them that have not answered for a while.
public struct NeighbourReport: Equatable, Sendable {
  public var bootID: UInt64
  /// `Bytes32.prefix` of their keys, in rising order, the suspected among them.
  public var heard: [UInt64]
  public var suspected: [UInt64]

  /// More than these are not told, so that the largest hearing fits into an entry.
  public static let suspectedLimit = 32

  public init(bootID: UInt64, heard: [UInt64], suspected: [UInt64]) {
    self.bootID = bootID
    self.heard = heard
    self.suspected = suspected
  }

  func write(to writer: inout Writer) {
    writer.u64(bootID)
    precondition(heard.count <= Limits.peersPerChannel)
    for list in [heard, Array(suspected.prefix(Self.suspectedLimit))] {
      writer.u8(UInt8(list.count))
      for id in list { writer.u64(id) }
    }
  }

  init(reading reader: inout Reader) throws(WireError) {
    bootID = try reader.u64()
    heard = try reader.prefixes()
    suspected = try reader.prefixes()
    guard suspected.count <= Self.suspectedLimit else { throw .tooLong }
  }
}

extension Reader {
  fileprivate mutating func prefixes() throws(WireError) -> [UInt64] {
    let count = Int(try u8())
    guard count <= Limits.peersPerChannel else { throw .tooLong }
    var list: [UInt64] = []
    for _ in 0..<count { list.append(try u64()) }
    return list
  }

  mutating func callID() throws(WireError) -> CallID {
    CallID(high: try u64(), low: try u64())
  }
}

extension Writer {
  mutating func callID(_ id: CallID) {
    u64(id.high)
    u64(id.low)
  }
}
