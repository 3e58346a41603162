import Muster

/// The state that the page shows besides video, at one moment.
public struct ViewSnapshot: Codable, Sendable, Equatable {
  /// This node as a member of the first channel.
  public var own: Own
  /// The name of the first channel, to which `own`, `call`, `members` and `messages` belong; empty
  /// if the node is in no channel.
  public var channel: String
  /// The id of the first channel, 16 hex digits; empty without a channel.
  public var channelID: String
  /// `created` for a channel with an owner and roles, otherwise `open`.
  public var kind: Administration.ChannelSummary.Kind
  /// The names of all channels that this node is in.
  public var channels: [String]
  /// The active call, whether or not this node participates; nil if there is none.
  public var call: Call?
  /// The name of the member that ended the last call for all, `You` for this node; nil if nobody
  /// did, and while a call is active.
  public var endedBy: String?
  /// The other members of the channel, in the order of their ids.
  public var members: [Member]
  /// The newest messages, in the order that all members see.
  public var messages: [Message]
  /// The newest warnings and errors; the page shows each of them once.
  public var notices: [String]
  /// The other channels, to which the page can switch.
  public var others: [Room]

  /// Creates a snapshot from its fields.
  public init(
    own: Own, channel: String, channelID: String, kind: Administration.ChannelSummary.Kind,
    channels: [String], call: Call?, endedBy: String? = nil, members: [Member],
    messages: [Message] = [], notices: [String], others: [Room] = []
  ) {
    self.own = own
    self.channel = channel
    self.channelID = channelID
    self.kind = kind
    self.channels = channels
    self.call = call
    self.endedBy = endedBy
    self.members = members
    self.messages = messages
    self.notices = notices
    self.others = others
  }

  /// All channels, including the first.
  var rooms: [Room] {
    let first = Room(
      channel: channel, channelID: channelID, kind: kind, own: own, call: call, endedBy: endedBy,
      members: members, messages: messages)
    return [first] + others
  }

  private enum CodingKeys: String, CodingKey {
    case own = "self"
    case channel, channelID, kind, channels, call, endedBy, members, messages, notices, others
  }
}

extension ViewSnapshot {
  /// The state of one channel; a snapshot has the same fields for the first channel.
  public struct Room: Codable, Sendable, Equatable {
    /// The channel's name.
    public var channel: String
    /// The channel's id, 16 hex digits.
    public var channelID: String
    /// `created` for a channel with an owner and roles, otherwise `open`.
    public var kind: Administration.ChannelSummary.Kind
    /// This node as a member of the channel.
    public var own: Own
    /// The active call, whether or not this node participates; nil if there is none.
    public var call: Call?
    /// The name of the member that ended the last call for all, `You` for this node; nil if nobody
    /// did, and while a call is active.
    public var endedBy: String?
    /// The other members of the channel.
    public var members: [Member]
    /// The newest messages, in the order that all members see.
    public var messages: [Message]

    private enum CodingKeys: String, CodingKey {
      case channel, channelID, kind
      case own = "self"
      case call, endedBy, members, messages
    }
  }

  /// This node as a member of a channel.
  public struct Own: Codable, Sendable, Equatable {
    /// This node's id, 16 hex digits.
    public var id: String
    /// The display name of this node.
    public var name: String
    /// The role: `owner`, `presenter`, `attendee`, `consumer` or `none`.
    public var role: String
    /// Whether the role permits starting a call.
    public var mayStart: Bool
    /// Whether the role permits sending audio and video.
    public var maySend: Bool
    /// Whether this node participates in the channel's active call.
    public var inCall: Bool
    /// The state of its participation, as in `call.state`.
    public var callState: String
    /// What this node gives up in calls for lack of CPU: 0 for nothing, as in `call.cpu`.
    public var cpuStep: Int
    /// Whether the microphone is muted.
    public var audioMuted: Bool
    /// Whether the camera is muted.
    public var videoMuted: Bool
    /// Whether this node detects speech in the audio that it sends; false outside a call.
    public var speaking: Bool
    /// Whether this node has a video source, muted or not.
    public var hasVideo: Bool
    /// Whether this node has an audio source, muted or not.
    public var hasAudio: Bool
    /// Whether this node has a second video stream to share, muted or not.
    public var hasShare: Bool
    /// Whether the role permits sharing.
    public var mayShare: Bool
    /// Whether the second video stream is not muted.
    public var sharing: Bool

    /// Creates a value from its fields.
    public init(
      id: String, name: String, role: String, mayStart: Bool, maySend: Bool, inCall: Bool,
      callState: String, audioMuted: Bool, videoMuted: Bool, speaking: Bool, hasVideo: Bool,
      hasAudio: Bool, hasShare: Bool = false, mayShare: Bool = false, sharing: Bool = false,
      cpuStep: Int = 0
    ) {
      self.id = id
      self.name = name
      self.role = role
      self.mayStart = mayStart
      self.maySend = maySend
      self.inCall = inCall
      self.callState = callState
      self.cpuStep = cpuStep
      self.audioMuted = audioMuted
      self.videoMuted = videoMuted
      self.speaking = speaking
      self.hasVideo = hasVideo
      self.hasAudio = hasAudio
      self.hasShare = hasShare
      self.mayShare = mayShare
      self.sharing = sharing
    }
  }

  /// The channel's active call.
  public struct Call: Codable, Sendable, Equatable {
    /// The id of the call, 32 hex digits.
    public var id: String
    /// The id of the member that leads the call, 16 hex digits.
    public var initiator: String
    /// The start of the call, in milliseconds since 1970.
    public var startedAt: Double
    /// The ids of the participants, sorted.
    public var participants: [String]
    /// The id of the dominant speaker, which may be this node; nil if nobody has spoken, and while
    /// this node is not in the call.
    public var speaker: String?
    /// The name of the member that removed this node from the call; nil if it may join.
    public var removedBy: String?
    /// The name of the member that would lead the call if this node, its initiator, handed it over;
    /// nil if none may, or if this node does not lead it.
    public var successor: String?

    /// Creates a value from its fields.
    public init(
      id: String, initiator: String, startedAt: Double, participants: [String],
      speaker: String? = nil, removedBy: String? = nil, successor: String? = nil
    ) {
      self.id = id
      self.initiator = initiator
      self.startedAt = startedAt
      self.participants = participants
      self.speaker = speaker
      self.removedBy = removedBy
      self.successor = successor
    }
  }

  /// The state of another member of the channel and of the connection to it.
  public struct Member: Codable, Sendable, Equatable {
    /// The member's id, 16 hex digits.
    public var id: String
    /// The display name of the member.
    public var name: String
    /// The role: `owner`, `presenter`, `attendee`, `consumer` or `none`.
    public var role: String
    /// Whether the member participates in a call of the channel.
    public var inCall: Bool
    /// Whether the microphone is muted or missing.
    public var audioMuted: Bool
    /// Whether the camera is muted or missing.
    public var videoMuted: Bool
    /// Whether the member is speaking, as detected by the member; false outside a call.
    public var speaking: Bool
    /// Whether the camera's video rests, since others rank higher for this node.
    public var outranked: Bool
    /// Whether this node may mute the member for everyone, or remove it from the call.
    public var mayModerate: Bool
    /// The tile of the member's camera; nil while the member is not in the call, and if no tile
    /// number is free.
    public var tile: UInt8?
    /// The width of the received layer in pixels; nil if no layer is received.
    public var width: Int?
    /// The height of the received layer in pixels; nil if no layer is received.
    public var height: Int?
    /// The frame rate of the received layer in frames per second; nil if no layer is received.
    public var fps: Double?
    /// The bit rate from the member to this node in kbit/s.
    public var kbps: Double?
    /// The smoothed round-trip time in ms; nil before the first measurement.
    public var rttMs: Double?
    /// The smoothed loss of packets that this node sends, as reported by the member, in percent.
    public var lossPercent: Double?
    /// The estimated bandwidth of the path to the member in kbit/s, and its queueing delay in ms;
    /// nil before the first report on media that this node sends.
    public var estimateKbps: Double?
    public var queueMs: Double?
    /// The layer that the member sends to this node, as `WxH@FPS`; nil for no layer.
    public var layer: String?
    /// The reason why the member sends this layer and no better layer; nil outside a call.
    public var why: String?
    /// The total time in ms for which the camera's video has been frozen in this call; nil outside
    /// a call.
    public var frozenMs: Double?
    /// The share of the member's audio in the last seconds that was not played, in percent; nil
    /// outside a call.
    public var audioLostPercent: Double?
    /// The name of the relaying member; nil for a direct path.
    public var via: String?
    /// The member's video streams besides the camera, each with a separate tile.
    public var streams: [Stream]

    /// Creates a value from its fields.
    public init(
      id: String, name: String, role: String, inCall: Bool, audioMuted: Bool, videoMuted: Bool,
      speaking: Bool, outranked: Bool = false, mayModerate: Bool = false, tile: UInt8? = nil,
      width: Int? = nil,
      height: Int? = nil, fps: Double? = nil, kbps: Double? = nil, rttMs: Double? = nil,
      lossPercent: Double? = nil, estimateKbps: Double? = nil, queueMs: Double? = nil,
      layer: String? = nil, why: String? = nil, frozenMs: Double? = nil,
      audioLostPercent: Double? = nil, via: String? = nil, streams: [Stream] = []
    ) {
      self.id = id
      self.name = name
      self.role = role
      self.inCall = inCall
      self.audioMuted = audioMuted
      self.videoMuted = videoMuted
      self.speaking = speaking
      self.outranked = outranked
      self.mayModerate = mayModerate
      self.tile = tile
      self.width = width
      self.height = height
      self.fps = fps
      self.kbps = kbps
      self.rttMs = rttMs
      self.lossPercent = lossPercent
      self.estimateKbps = estimateKbps
      self.queueMs = queueMs
      self.layer = layer
      self.why = why
      self.frozenMs = frozenMs
      self.audioLostPercent = audioLostPercent
      self.via = via
      self.streams = streams
    }
  }
  /// A video stream besides the camera.
  public struct Stream: Codable, Sendable, Equatable {
    /// The name of the stream, such as `screen`.
    public var stream: String
    /// The number of the tile in which the page shows the stream, 1 to 255.
    public var tile: UInt8
    /// Whether the stream rests, since others rank higher for this node.
    public var outranked: Bool
    /// The width of the received layer in pixels; nil if no layer is received.
    public var width: Int?
    /// The height of the received layer in pixels; nil if no layer is received.
    public var height: Int?
    /// The frame rate of the received layer in frames per second; nil if no layer is received.
    public var fps: Double?
    /// The bit rate of the stream from the member to this node in kbit/s.
    public var kbps: Double?
    /// The received layer, as `WxH@FPS`; nil for no layer.
    public var layer: String?
    /// The reason why the member sends this layer and no better layer.
    public var why: String?
    /// The total time in ms for which the stream has been frozen in this call.
    public var frozenMs: Double?
  }

  /// A message as in the events of `muster join --json`, but with the time in milliseconds.
  public struct Message: Codable, Sendable, Equatable {
    /// The id of the message, 16 hex digits, unique within the channel.
    public var id: String
    /// The id of the author, 16 hex digits.
    public var from: String
    /// The current or last known name of the author.
    public var name: String
    /// The id of the recipient; nil for a message to all members.
    public var to: String?
    /// The name of the recipient; nil for a message to all members.
    public var toName: String?
    /// The text on one line, without control characters.
    public var text: String
    /// The time of sending in milliseconds since 1970, by the author's wall clock.
    public var sentAt: Double

    /// Creates a value from its fields.
    public init(
      id: String, from: String, name: String, to: String? = nil, toName: String? = nil,
      text: String, sentAt: Double
    ) {
      self.id = id
      self.from = from
      self.name = name
      self.to = to
      self.toName = toName
      self.text = text
      self.sentAt = sentAt
    }
  }
}
