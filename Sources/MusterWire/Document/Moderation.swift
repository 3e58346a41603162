import MusterBase

/// The muting of a member in a call by a presenter or owner, or its removal from the call.
///
/// Layout in bytes: call id 16, member 32, actions 1.
public struct Moderation: Equatable, Sendable {
  /// A set of actions; bits that this version does not know have no effect.
  public struct Actions: OptionSet, Sendable {
    /// The bits of the encoded byte.
    public let rawValue: UInt8

    /// Takes the bits as they are.
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// The member's node mutes its microphone, which its user may unmute.
    public static let muteAudio = Actions(rawValue: 1 << 0)
    /// The member's node turns its camera off, which its user may turn on.
    public static let muteVideo = Actions(rawValue: 1 << 1)
    /// The member's node stops its second video stream, which its user may resume.
    public static let muteShare = Actions(rawValue: 1 << 2)
    /// The member is in this call no more, and cannot come back to it.
    public static let remove = Actions(rawValue: 1 << 3)
    /// All that this version knows.
    public static let all: Actions = [.muteAudio, .muteVideo, .muteShare, .remove]
  }

  /// The id of the call.
  public var call: CallID
  /// The member that is muted or removed.
  public var member: NodeID
  /// The actions of the author.
  public var actions: Actions

  /// Describes what is done to `member` in `call`.
  public init(call: CallID, member: NodeID, actions: Actions) {
    self.call = call
    self.member = member
    self.actions = actions
  }

  func write(to writer: inout Writer) {
    writer.callID(call)
    writer.append(member.key)
    writer.u8(actions.rawValue)
  }

  init(reading reader: inout Reader) throws(WireError) {
    call = try reader.callID()
    member = NodeID(try reader.bytes32())
    actions = Actions(rawValue: try reader.u8())
  }
}
