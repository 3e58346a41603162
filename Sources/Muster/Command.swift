import MusterBase

/// A request to a running node, from the terminal's keys, JSON lines on standard input, the call
/// page, the control socket or the API.
///
/// A `channel` is a channel's name. Nil stands for the only channel that the node is in, and in
/// `mute` and `unmute` for every channel. Members are named by an id (16 hex digits) or a full key
/// (64 hex digits).
public enum Command: Equatable, Sendable {
  /// Starts the channel's call, or joins the active one.
  case startCall(channel: String? = nil)
  /// Joins the active call; an error if there is no active call.
  case joinCall(channel: String? = nil)
  /// Leaves the call; when this node is its initiator, the call ends for all participants, or
  /// `handOver` leaves it to the one that has been in it for the longest time.
  case leaveCall(handOver: Bool = false, channel: String? = nil)
  /// Mutes the microphone, the camera or the share; other media continue.
  case mute(Media, channel: String? = nil)
  /// Unmutes the microphone, the camera or the share.
  case unmute(Media, channel: String? = nil)
  /// Mutes a member of a lower role in the call for everyone, until its user unmutes.
  case muteMember(Media, of: String, channel: String? = nil)
  /// Removes a member of a lower role from the call, to which it cannot come back.
  case removeFromCall(String, channel: String? = nil)
  /// Requests video of one member or of all members.
  case watch(Watch)
  /// Requests a keyframe from a member, for a viewer whose decoder has lost its state.
  case keyframe(member: String, stream: String? = nil, channel: String? = nil)
  /// Sends a text message of at most `Limits.textBytes` bytes to all members, or only to the member
  /// `to`, which may be unreachable.
  case say(String, to: String? = nil, channel: String? = nil)
  /// Joins another channel.
  case joinChannel(JoinChannel)
  /// Leaves the channel and its call.
  case leaveChannel(channel: String? = nil)
  /// Leaves all channels and stops the node; carried out by the host.
  case quit
  /// A request about channels, roles, invites or the node itself, sent over the control socket.
  case administer(Administration.Request)

  /// The media that can be muted: the microphone (`audio`), the camera (`video`) or the second
  /// video stream (`share`).
  public enum Media: String, Codable, Sendable, CaseIterable { case audio, video, share }

  /// A request for video of one or all members, up to a size and a frame rate.
  public struct Watch: Equatable, Sendable {
    /// The member whose video is requested; nil for all members, including those that join later.
    public var member: String?
    /// The name of a video stream, such as `camera`; nil for all streams.
    public var stream: String?
    /// The largest size requested, in pixels; nil for no video.
    public var size: VideoSize?
    /// The highest frame rate requested, 1 to 254; nil for any.
    public var framesPerSecond: Int?
    /// Whether the member's video ranks before all that are not pinned; needs a member.
    public var isPinned: Bool
    /// The channel's name; nil for the only channel that the node is in.
    public var channel: String?

    /// Requests video no larger than `size`.
    public init(
      _ size: VideoSize?, framesPerSecond: Int? = nil, isPinned: Bool = false,
      stream: String? = nil, of member: String? = nil, channel: String? = nil
    ) {
      self.size = size
      self.framesPerSecond = framesPerSecond
      self.isPinned = isPinned
      self.stream = stream
      self.member = member
      self.channel = channel
    }
  }

  /// A channel to join while the node runs.
  public struct JoinChannel: Equatable, Sendable {
    /// The channel's name, or the id of a stored channel; may be nil with an invite, which contains
    /// the name.
    public var channel: String?
    /// The passphrase from which an open channel's key is derived; nil for none.
    public var passphrase: String?
    /// The URL of an invite.
    public var invite: String?
    /// Whether to start or join the channel's call at once.
    public var call: Bool

    /// Without a passphrase or an invite, joins the channel stored under this name, or else, with a
    /// warning, the open channel whose key is derived from the name.
    public init(
      channel: String? = nil, passphrase: String? = nil, invite: String? = nil, call: Bool = false
    ) {
      self.channel = channel
      self.passphrase = passphrase
      self.invite = invite
      self.call = call
    }
  }

  /// The command's name in JSON, the value of the field `do`.
  public enum Verb: String, Codable, Sendable, CaseIterable {
    case startCall = "start-call"
    case joinCall = "join-call"
    case leaveCall = "leave-call"
    case mute, unmute
    case muteMember = "mute-member"
    case removeFromCall = "remove-from-call"
    case watch, say, quit
    case joinChannel = "join-channel"
    case leaveChannel = "leave-channel"
    case keyframe
  }

  /// The origin of a command, which determines the permitted commands.
  public enum Source: Sendable {
    /// The process that runs the node: its standard input, its terminal, its code.
    case host
    /// The call page.
    case page
    /// Another process of the same user, over the control socket.
    case controlSocket
  }

  /// Throws if the source is not permitted to send this command; a page, for example, must not stop
  /// the node.
  public func check(from source: Source) throws(MusterError) {
    switch (source, self) {
    case (.page, .quit):
      throw MusterError("a page cannot end the node", hint: "end it where it runs", kind: .usage)
    case (.page, .joinChannel), (.page, .leaveChannel):
      throw MusterError(
        "a page shows the channels that the node is in", hint: "join and leave where it runs",
        kind: .usage)
    case (.page, .administer), (.host, .administer):
      throw MusterError(
        "this is a command of the control socket", hint: "see muster channel --help", kind: .usage)
    case (.controlSocket, .administer): return
    case (_, .startCall), (_, .joinCall), (_, .leaveCall), (_, .mute), (_, .unmute),
      (_, .muteMember), (_, .removeFromCall), (_, .watch), (_, .keyframe), (_, .say):
      return
    case (.host, .joinChannel), (.host, .leaveChannel), (.host, .quit),
      (.controlSocket, .joinChannel), (.controlSocket, .leaveChannel), (.controlSocket, .quit):
      return
    }
  }

  /// The channel named in the command; nil for `quit` and if the command names no channel.
  public var channel: String? {
    switch self {
    case .startCall(let channel), .joinCall(let channel), .leaveCall(_, let channel),
      .mute(_, let channel), .unmute(_, let channel), .muteMember(_, _, let channel),
      .removeFromCall(_, let channel), .keyframe(_, _, let channel),
      .say(_, _, let channel), .leaveChannel(let channel):
      channel
    case .watch(let watch): watch.channel
    case .joinChannel(let join): join.channel
    case .administer(let request): request.channel
    case .quit: nil
    }
  }

  /// The command with `channel` filled in if it names no channel; `joinChannel`, `quit` and
  /// `administer` are unchanged.
  public func defaulting(to channel: String?) -> Command {
    guard self.channel == nil else { return self }
    switch self {
    case .startCall: return .startCall(channel: channel)
    case .joinCall: return .joinCall(channel: channel)
    case .leaveCall(let handOver, _): return .leaveCall(handOver: handOver, channel: channel)
    case .mute(let media, _): return .mute(media, channel: channel)
    case .unmute(let media, _): return .unmute(media, channel: channel)
    case .muteMember(let media, let member, _):
      return .muteMember(media, of: member, channel: channel)
    case .removeFromCall(let member, _): return .removeFromCall(member, channel: channel)
    case .watch(var watch):
      watch.channel = channel
      return .watch(watch)
    case .keyframe(let member, let stream, _):
      return .keyframe(member: member, stream: stream, channel: channel)
    case .say(let text, let to, _): return .say(text, to: to, channel: channel)
    case .leaveChannel: return .leaveChannel(channel: channel)
    case .joinChannel, .quit, .administer: return self
    }
  }
}
