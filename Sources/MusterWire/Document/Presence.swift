import MusterBase

/// A member's state. Of several presences of one author, the latest counts.
///
/// Layout in bytes: boot id 8, flags 2, name length 1 and UTF-8; if bit 15 of the flags is set (in
/// a call): call id 16, joined 8; count of streams 1 and each `StreamOffer` in ascending order of
/// number.
public struct Presence: Equatable, Sendable {
  /// The boot id of the author's current run.
  public var bootID: UInt64
  /// The Boolean parts of the state, such as mute states.
  public var flags: MemberFlags
  /// The member's display name; untrusted.
  public var name: String
  /// The call that the member is in; nil outside a call.
  public var call: Participation?
  /// The video streams that the member offers, in ascending order.
  public var streams: [StreamOffer]

  /// `name` has at most `Limits.nameBytes` bytes; `streams` has at most `Limits.videoStreams`
  /// elements, in ascending order.
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
    .relaysMuch, .handsOver,
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

/// A member's participation in a call.
public struct Participation: Equatable, Hashable, Sendable {
  /// The id of the call that the member is in.
  public var id: CallID
  /// The member's Lamport counter at the time of joining; the first participant has the smallest
  /// counter.
  public var joined: UInt64

  /// Describes a participation since the Lamport counter `joined`.
  public init(id: CallID, joined: UInt64) {
    self.id = id
    self.joined = joined
  }
}

/// The Boolean parts of a member's state.
public struct MemberFlags: OptionSet, Sendable, Hashable {
  /// The bits of the wire format.
  public let rawValue: UInt16

  /// Creates flags from the bits of the wire format; encoding a presence drops unknown bits.
  public init(rawValue: UInt16) { self.rawValue = rawValue }

  /// The member is in a call; never sent, because the presence names the call.
  public static let inCall = MemberFlags(rawValue: 1 << 0)
  /// The microphone is muted.
  public static let audioMuted = MemberFlags(rawValue: 1 << 1)
  /// The camera is muted.
  public static let videoMuted = MemberFlags(rawValue: 1 << 2)
  /// The member is speaking (audio level above a threshold, with hysteresis).
  public static let speaking = MemberFlags(rawValue: 1 << 3)
  /// The member offers `StreamID.screen`.
  public static let sharing = MemberFlags(rawValue: 1 << 4)
  /// The member leaves the channel; this is its last presence.
  public static let left = MemberFlags(rawValue: 1 << 5)
  /// The member has an audio source.
  public static let audio = MemberFlags(rawValue: 1 << 7)
  /// The member does not relay for other members.
  public static let declinesRelaying = MemberFlags(rawValue: 1 << 8)
  /// The member relays so much already that other relays are preferable.
  public static let relaysMuch = MemberFlags(rawValue: 1 << 9)
  /// The member has left the call that it led, so that another leads it from now on. Without, an
  /// initiator that is missing may come back.
  public static let handsOver = MemberFlags(rawValue: 1 << 10)
}

/// A member's report of its neighbours (a link-state advertisement). Of several reports of one
/// author, the latest counts.
///
/// Layout in bytes: boot id 8, count 1 and the first 8 bytes of each neighbour's id, count 1 and
/// the same for each suspected neighbour.
public struct NeighbourReport: Equatable, Sendable {
  /// The author's boot id, as in its presence.
  public var bootID: UInt64
  /// The id prefixes (`Bytes32.prefix`) of all neighbours, including suspected neighbours, in
  /// ascending order.
  public var heard: [UInt64]
  /// The id prefixes of the suspected neighbours (SWIM), in ascending order; only the first
  /// `suspectedLimit` are encoded.
  public var suspected: [UInt64]

  /// The maximum number of suspected neighbours, so that the largest report fits into an entry.
  public static let suspectedLimit = 32

  /// Both lists must be in ascending order, with at most `Limits.peersPerChannel` neighbours.
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
