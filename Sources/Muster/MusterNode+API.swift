import MusterBase
import MusterChannel
import MusterCore
import MusterWire

/// What programs call; the command line's JSON commands come down to the same.
///
/// Every method names a channel by the name that it was joined under, and throws a `MusterError`
/// that says why something cannot be done; nothing was changed then. What follows of it comes as
/// events. Cancelling a task that waits for events ends the waiting, not the node.
extension MusterNode {
  // MARK: Calls

  /// Starts the channel's call, or joins it when one is on.
  public func startCall(in channel: String) throws(MusterError) {
    let channel = try self.channel(named: channel)
    try attempt { node throws(CommandRefusal) in try node.startCall(in: channel, at: now) }
    updateEncoders()
  }

  /// Joins the call that is on.
  public func joinCall(in channel: String) throws(MusterError) {
    guard try call(in: channel) != nil else {
      throw MusterError("there is no call to join", hint: "start one with startCall(in:)")
    }
    try startCall(in: channel)
  }

  /// Leaves the call; when this node is its initiator, the call is over for all.
  public func leaveCall(in channel: String) throws(MusterError) {
    perform(node.leaveCall(in: try self.channel(named: channel), at: now))
    updateEncoders()
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

  /// Writes to everyone in the channel, or to one member only.
  public func say(
    _ text: String, to receiver: NodeID? = nil, in channel: String
  ) throws(MusterError) {
    try say(text, to: receiver, in: try self.channel(named: channel))
  }

  /// What was written, in the one order that all members see; at most `Limits.messages`.
  public func messages(in channel: String) throws(MusterError) -> [TextMessage] {
    node.history(of: try self.channel(named: channel))
  }

  // MARK: Media

  /// Silences or restores the microphone in one channel, or everywhere.
  public func setMuted(audio: Bool, in channel: String? = nil) throws(MusterError) {
    var id: ChannelID?
    if let channel { id = try self.channel(named: channel) }
    perform(node.setMuted(audio: audio, in: id, at: now))
    updateEncoders()
  }

  /// Switches the camera off or on in one channel, or everywhere; other video streams go on.
  public func setMuted(video: Bool, in channel: String? = nil) throws(MusterError) {
    var id: ChannelID?
    if let channel { id = try self.channel(named: channel) }
    perform(node.setMuted(video: video, in: id, at: now))
    updateEncoders()
  }

  /// Requests frames no larger than `size`, in pixels, of one member or of all; nil requests none.
  /// `stream` is one of their video streams, or every one when it is nil.
  public func watch(
    _ size: VideoSize?, stream: StreamID? = nil, of member: NodeID? = nil, in channel: String
  ) throws(MusterError) {
    let requested = size.map {
      RequestedResolution(width: UInt16(clamping: $0.width), height: UInt16(clamping: $0.height))
    }
    perform(
      node.watch(
        requested ?? .none, stream: stream, of: member,
        in: try self.channel(named: channel), at: now))
  }
}
