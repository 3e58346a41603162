import MusterBase

/// A request to a running node: the same values come from the keys of the terminal, from JSON lines
/// on standard input, from the call page, from the control socket and from the API.
///
/// A `channel` is a channel's name. Nil means the only channel that the node is in, and for `mute`
/// and `unmute` every channel. Members are named by an id (16 hex digits) or a full key (64).
public enum Command: Equatable, Sendable {
  /// Starts the channel's call, or joins the one that is active.
  case startCall(channel: String? = nil)
  /// Joins the active call; an error when there is none.
  case joinCall(channel: String? = nil)
  /// Leaves the call; when this node is its initiator, the call ends for all participants.
  case leaveCall(channel: String? = nil)
  /// Stops sending one medium, in one channel or in all.
  case mute(Media, channel: String? = nil)
  /// Sends the medium again.
  case unmute(Media, channel: String? = nil)
  /// Requests video of one member, or of everyone.
  case watch(Watch)
  /// Requests a keyframe from a member, for a viewer whose decoder has lost its state.
  case keyframe(member: String, stream: String? = nil, channel: String? = nil)
  /// Writes to everyone, or to the member `to` only, who may be away. At most `Limits.textBytes`.
  case say(String, to: String? = nil, channel: String? = nil)
  /// Joins one more channel.
  case joinChannel(JoinChannel)
  /// Leaves the channel, and the call in it.
  case leaveChannel(channel: String? = nil)
  /// Leaves everything and ends; carried out by the host.
  case quit
  /// Channels, roles, invites and questions about the node, for commands beside a running node.
  case administer(Administration.Request)

  /// A medium that a node sends.
  public enum Media: String, Codable, Sendable, CaseIterable { case audio, video }

  /// A requested resolution.
  public struct Watch: Equatable, Sendable {
    /// The member whose video is meant; nil for all, including those who join later.
    public var member: String?
    /// The name of a video stream, such as `camera`; nil for all streams.
    public var stream: String?
    /// No larger than this, in pixels; nil for no video at all.
    public var size: VideoSize?
    /// The channel; nil for the only one.
    public var channel: String?

    /// Requests video of `size` at most.
    public init(
      _ size: VideoSize?, stream: String? = nil, of member: String? = nil, channel: String? = nil
    ) {
      self.size = size
      self.stream = stream
      self.member = member
      self.channel = channel
    }
  }

  /// A channel to join while the node runs.
  public struct JoinChannel: Equatable, Sendable {
    /// The channel's name; may be nil with an invite, which has it.
    public var channel: String?
    /// The secret of an open channel.
    public var passphrase: String?
    /// The URL of an invite.
    public var invite: String?
    /// Whether to start or join the channel's call at once.
    public var call: Bool

    /// Without passphrase and invite, the channel remembered under that name, else the open channel
    /// that everyone who knows the name can join.
    public init(
      channel: String? = nil, passphrase: String? = nil, invite: String? = nil, call: Bool = false
    ) {
      self.channel = channel
      self.passphrase = passphrase
      self.invite = invite
      self.call = call
    }
  }

  /// The command's name in JSON, the value of `do`.
  public enum Verb: String, Codable, Sendable, CaseIterable {
    case startCall = "start-call"
    case joinCall = "join-call"
    case leaveCall = "leave-call"
    case mute, unmute, watch, say, quit
    case joinChannel = "join-channel"
    case leaveChannel = "leave-channel"
    case keyframe
  }

  /// The origin of a command, which decides what it may request.
  public enum Source: Sendable {
    /// The process that runs the node: its standard input, its terminal, its code.
    case host
    /// The call page.
    case page
    /// Another process of the same user, over the control socket.
    case controlSocket
  }

  /// Refuses what a source may not ask, such as the page to end the node.
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
    default: return
    }
  }

  /// The channel that the command names.
  public var channel: String? {
    switch self {
    case .startCall(let channel), .joinCall(let channel), .leaveCall(let channel),
      .mute(_, let channel), .unmute(_, let channel), .keyframe(_, _, let channel),
      .say(_, _, let channel), .leaveChannel(let channel):
      channel
    case .watch(let watch): watch.channel
    case .joinChannel(let join): join.channel
    case .administer(let request): request.channel
    case .quit: nil
    }
  }

  /// The same command in `channel`, unless it names one already.
  public func defaulting(to channel: String?) -> Command {
    guard self.channel == nil else { return self }
    switch self {
    case .startCall: return .startCall(channel: channel)
    case .joinCall: return .joinCall(channel: channel)
    case .leaveCall: return .leaveCall(channel: channel)
    case .mute(let media, _): return .mute(media, channel: channel)
    case .unmute(let media, _): return .unmute(media, channel: channel)
    case .watch(let watch):
      return .watch(
        Watch(watch.size, stream: watch.stream, of: watch.member, channel: channel))
    case .keyframe(let member, let stream, _):
      return .keyframe(member: member, stream: stream, channel: channel)
    case .say(let text, let to, _): return .say(text, to: to, channel: channel)
    case .leaveChannel: return .leaveChannel(channel: channel)
    case .joinChannel, .quit, .administer: return self
    }
  }
}
