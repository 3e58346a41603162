import MusterBase
import MusterChannel
import MusterCore
import MusterWire

/// The API for programs: each method is one `Command`, with types of its own.
///
/// Every method names a channel by the name that it was joined under, and throws a `MusterError`
/// that says why something cannot be done; nothing was changed then. Its effects are reported as
/// events. Cancelling a task that waits for events ends the waiting, not the node.
extension MusterNode {
  // MARK: Calls

  /// Starts the channel's call, or joins it when one is active; throws where the role forbids it.
  public func startCall(in channel: String) throws(MusterError) {
    try apply(.startCall(channel: channel))
  }

  /// Joins the active call; throws when there is none.
  public func joinCall(in channel: String) throws(MusterError) {
    try apply(.joinCall(channel: channel))
  }

  /// Leaves the call; when this node is its initiator, the call ends for all participants. Throws
  /// when this node is not in it.
  public func leaveCall(in channel: String) throws(MusterError) {
    try apply(.leaveCall(channel: channel))
  }

  /// The call that is on, whether this node is in it or not.
  public func call(in channel: String) throws(MusterError) -> ActiveCall? {
    node.call(in: try self.channel(named: channel))
  }

  // MARK: Members

  /// Everyone who can be reached, without this node.
  public func members(in channel: String) -> [Member] {
    guard let channel = try? self.channel(named: channel) else { return [] }
    return node.members(of: channel)
  }

  // MARK: Text

  /// Writes to everyone in the channel, or to one member only; at most `Limits.textBytes` bytes.
  public func say(
    _ text: String, to receiver: NodeID? = nil, in channel: String
  ) throws(MusterError) {
    try apply(.say(text, to: receiver?.key.hex, channel: channel))
  }

  /// The channel's text messages, in the one order that all members see; at most `Limits.messages`.
  public func messages(in channel: String) throws(MusterError) -> [TextMessage] {
    node.history(of: try self.channel(named: channel))
  }

  // MARK: Media

  /// Mutes or unmutes the microphone in one channel, or in all.
  public func setMuted(audio: Bool, in channel: String? = nil) throws(MusterError) {
    try apply(audio ? .mute(.audio, channel: channel) : .unmute(.audio, channel: channel))
  }

  /// Switches the camera off or on in one channel, or in all; other video streams go on.
  public func setMuted(video: Bool, in channel: String? = nil) throws(MusterError) {
    try apply(video ? .mute(.video, channel: channel) : .unmute(.video, channel: channel))
  }

  /// Requests video no larger than `size`, in pixels, of one member or of all; nil requests none.
  /// `stream` is one of their video streams, or every one when it is nil.
  public func watch(
    _ size: VideoSize?, stream: StreamID? = nil, of member: NodeID? = nil, in channel: String
  ) throws(MusterError) {
    try apply(
      .watch(
        .init(
          size, stream: stream?.description, of: member?.key.hex, channel: channel)))
  }
}
