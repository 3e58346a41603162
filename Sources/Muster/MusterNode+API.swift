import MusterBase
import MusterChannel
import MusterCore
import MusterWire

/// The typed API: methods that carry out one `Command` each, and queries of the node's state.
///
/// Every method identifies a channel by the name under which it was joined. A method that throws a
/// `MusterError` has changed nothing. Effects are reported as events. Cancelling a task that waits
/// for events does not stop the node.
extension MusterNode {
  // MARK: Calls

  /// Starts the channel's call, or joins the active one; throws if this node's role does not permit
  /// that.
  public func startCall(in channel: String) throws(MusterError) {
    try apply(.startCall(channel: channel))
  }

  /// Joins the active call; throws if there is no active call.
  public func joinCall(in channel: String) throws(MusterError) {
    try apply(.joinCall(channel: channel))
  }

  /// Leaves the call; if this node is the initiator, the call ends for all participants or, with
  /// `handOver`, goes on under the one that has been in it for the longest time. Throws if this
  /// node is not in the call, or if nobody else in it may lead it.
  public func leaveCall(in channel: String, handOver: Bool = false) throws(MusterError) {
    try apply(.leaveCall(handOver: handOver, channel: channel))
  }

  /// The active call, whether or not this node is a participant; nil if there is none. Throws if
  /// this node is not in the channel.
  public func call(in channel: String) throws(MusterError) -> ActiveCall? {
    node.call(in: try self.channel(named: channel))
  }

  // MARK: Members

  /// The reachable members, without this node; empty for an unknown channel.
  public func members(in channel: String) -> [Member] {
    guard let channel = try? self.channel(named: channel) else { return [] }
    return node.members(of: channel)
  }

  // MARK: Text

  /// Sends a text message of at most `Limits.textBytes` bytes to all members of the channel, or
  /// only to `receiver`.
  public func say(
    _ text: String, to receiver: NodeID? = nil, in channel: String
  ) throws(MusterError) {
    try apply(.say(text, to: receiver?.key.hex, channel: channel))
  }

  /// The channel's text messages, at most `Limits.messages`, in the same order on all members.
  public func messages(in channel: String) throws(MusterError) -> [TextMessage] {
    node.history(of: try self.channel(named: channel))
  }

  // MARK: Media

  /// Mutes or unmutes the microphone in one channel, or in all if `channel` is nil.
  public func setMuted(audio: Bool, in channel: String? = nil) throws(MusterError) {
    try apply(audio ? .mute(.audio, channel: channel) : .unmute(.audio, channel: channel))
  }

  /// Switches the camera off or on in one channel, or in all if `channel` is nil; other video
  /// streams continue.
  public func setMuted(video: Bool, in channel: String? = nil) throws(MusterError) {
    try apply(video ? .mute(.video, channel: channel) : .unmute(.video, channel: channel))
  }

  /// Stops or resumes the second video stream in one channel, or in all if `channel` is nil.
  public func setMuted(share: Bool, in channel: String? = nil) throws(MusterError) {
    try apply(share ? .mute(.share, channel: channel) : .unmute(.share, channel: channel))
  }

  /// Mutes a member of a lower role in the call for everyone, until its user unmutes. Throws if the
  /// member is not in the call, or the role of this node is not above that of the member.
  public func mute(
    _ media: Command.Media, of member: NodeID, in channel: String
  ) throws(MusterError) {
    try apply(.muteMember(media, of: member.key.hex, channel: channel))
  }

  /// Removes a member of a lower role from the call, to which it cannot come back. Throws as
  /// `mute(_:of:in:)` does.
  public func removeFromCall(_ member: NodeID, in channel: String) throws(MusterError) {
    try apply(.removeFromCall(member.key.hex, channel: channel))
  }

  /// Requests video no larger than `size`, in pixels, and no faster than `framesPerSecond`, from
  /// one member or from all; a nil `size` requests no video. A nil `stream` stands for all video
  /// streams. `isPinned` lets the video of a member rank before all that are not pinned.
  public func watch(
    _ size: VideoSize?, framesPerSecond: Int? = nil, isPinned: Bool = false,
    stream: StreamID? = nil, of member: NodeID? = nil, in channel: String
  ) throws(MusterError) {
    try apply(
      .watch(
        .init(
          size, framesPerSecond: framesPerSecond, isPinned: isPinned, stream: stream?.description,
          of: member?.key.hex, channel: channel)))
  }
}
