/// Everything that the page shows besides video, as it is at one moment.
public struct ViewSnapshot: Codable, Sendable, Equatable {
  /// This node in the channel.
  public var own: Own
  /// The channel's name.
  public var channel: String
  /// Names of all channels this node is in.
  public var channels: [String]
  /// The active call, whether this node is in it or not.
  public var call: Call?
  /// The others in the channel, in the order in which the page keeps them.
  public var members: [Member]
  /// The newest of what was written, in the order that all members see.
  public var messages: [Message]
  /// Warnings still standing; the page shows each once.
  public var notices: [String]
  /// The channels besides the first, which the page may show in its place.
  public var others: [Room]

  /// The state at one moment.
  public init(
    own: Own, channel: String, channels: [String], call: Call?, members: [Member],
    messages: [Message] = [], notices: [String], others: [Room] = []
  ) {
    self.own = own
    self.channel = channel
    self.channels = channels
    self.call = call
    self.members = members
    self.messages = messages
    self.notices = notices
    self.others = others
  }

  /// Every channel, the first one included.
  var rooms: [Room] {
    [Room(channel: channel, own: own, call: call, members: members, messages: messages)] + others
  }

  private enum CodingKeys: String, CodingKey {
    case own = "self"
    case channel, channels, call, members, messages, notices, others
  }
}

extension ViewSnapshot {
  /// One channel; a snapshot has the same fields for the first.
  public struct Room: Codable, Sendable, Equatable {
    /// The channel's name.
    public var channel: String
    /// This node in the channel.
    public var own: Own
    /// The active call, whether this node is in it or not.
    public var call: Call?
    /// The others in the channel.
    public var members: [Member]
    /// The newest of what was written, in the order that all members see.
    public var messages: [Message]

    private enum CodingKeys: String, CodingKey {
      case channel
      case own = "self"
      case call, members, messages
    }
  }

  /// This node.
  public struct Own: Codable, Sendable, Equatable {
    /// This node's id.
    public var id: String
    /// The name that the member chose.
    public var name: String
    /// `owner`, `presenter`, `attendee`, `consumer` or `none`.
    public var role: String
    /// Whether the role allows to start a call.
    public var mayStart: Bool
    /// Whether it allows sending audio and video.
    public var maySend: Bool
    /// Whether it is in a call.
    public var inCall: Bool
    /// Whether no audio is to be expected.
    public var audioMuted: Bool
    /// Whether no video is to be expected.
    public var videoMuted: Bool
    /// By the member's own voice detector; false outside a call.
    public var speaking: Bool
    /// Whether there is a video source at all, muted or not.
    public var hasVideo: Bool
    /// Whether there is an audio source at all, muted or not.
    public var hasAudio: Bool

    /// A value of these fields.
    public init(
      id: String, name: String, role: String, mayStart: Bool, maySend: Bool, inCall: Bool,
      audioMuted: Bool, videoMuted: Bool, speaking: Bool, hasVideo: Bool, hasAudio: Bool
    ) {
      self.id = id
      self.name = name
      self.role = role
      self.mayStart = mayStart
      self.maySend = maySend
      self.inCall = inCall
      self.audioMuted = audioMuted
      self.videoMuted = videoMuted
      self.speaking = speaking
      self.hasVideo = hasVideo
      self.hasAudio = hasAudio
    }
  }

  /// The channel's active call.
  public struct Call: Codable, Sendable, Equatable {
    /// 32 hex digits.
    public var id: String
    /// Id of the member that leads the call.
    public var initiator: String
    /// Wall time in milliseconds since 1970.
    public var startedAt: Double
    /// Ids of the participants, sorted.
    public var participants: [String]

    /// A value of these fields.
    public init(id: String, initiator: String, startedAt: Double, participants: [String]) {
      self.id = id
      self.initiator = initiator
      self.startedAt = startedAt
      self.participants = participants
    }
  }

  /// Another member of the channel and what its connection is like.
  public struct Member: Codable, Sendable, Equatable {
    /// The member's id, 16 hex digits.
    public var id: String
    /// The name that the member chose.
    public var name: String
    /// `owner`, `presenter`, `attendee`, `consumer` or `none`.
    public var role: String
    /// Whether it is in a call.
    public var inCall: Bool
    /// Whether no audio is to be expected.
    public var audioMuted: Bool
    /// Whether no video is to be expected.
    public var videoMuted: Bool
    /// By the member's own voice detector; false outside a call.
    public var speaking: Bool
    /// The number of its frames; nil while it is not in the call.
    public var tile: UInt8?
    /// Width of the received layer, in pixels; nil without one.
    public var width: Int?
    /// Height of the received layer, in pixels; nil without one.
    public var height: Int?
    /// Frames a second of the received layer.
    public var fps: Double?
    /// What it sends to this node, in kbit/s.
    public var kbps: Double?
    /// Smoothed round trip in ms; nil before the first answer.
    public var rttMs: Double?
    /// Percent of what this node sends, as the member reports it, smoothed.
    public var lossPercent: Double?
    /// The layer it sends to this node, as text.
    public var layer: String?
    /// Why that layer and no better one.
    public var why: String?
    /// The name of the member through whom it is reached; nil where it is reached directly.
    public var via: String?
    /// Its video streams besides the camera, each with a tile of its own.
    public var streams: [Stream]

    /// A value of these fields.
    public init(
      id: String, name: String, role: String, inCall: Bool, audioMuted: Bool, videoMuted: Bool,
      speaking: Bool, tile: UInt8? = nil, width: Int? = nil, height: Int? = nil,
      fps: Double? = nil, kbps: Double? = nil, rttMs: Double? = nil, lossPercent: Double? = nil,
      layer: String? = nil, why: String? = nil, via: String? = nil,
      streams: [Stream] = []
    ) {
      self.id = id
      self.name = name
      self.role = role
      self.inCall = inCall
      self.audioMuted = audioMuted
      self.videoMuted = videoMuted
      self.speaking = speaking
      self.tile = tile
      self.width = width
      self.height = height
      self.fps = fps
      self.kbps = kbps
      self.rttMs = rttMs
      self.lossPercent = lossPercent
      self.layer = layer
      self.why = why
      self.via = via
      self.streams = streams
    }
  }
  /// A video stream besides the camera.
  public struct Stream: Codable, Sendable, Equatable {
    /// As the member calls it, such as `screen`.
    public var stream: String
    /// The number of its frames.
    public var tile: UInt8
    /// Width of the received layer, in pixels; nil without one.
    public var width: Int?
    /// Height of the received layer, in pixels; nil without one.
    public var height: Int?
    /// Frames a second of the received layer.
    public var fps: Double?
    /// What the member sends of it to this node, in kbit/s.
    public var kbps: Double?
    /// The received layer, as text.
    public var layer: String?
  }

  /// A message as the events of `muster join --json` have it, with the time in milliseconds.
  public struct Message: Codable, Sendable, Equatable {
    /// 16 hex digits; no two messages of a channel have the same.
    public var id: String
    /// Id of the author.
    public var from: String
    /// What the author calls itself, or called itself when it was last here.
    public var name: String
    /// Id of the recipient; nil for a message to all members.
    public var to: String?
    /// What the receiver calls itself.
    public var toName: String?
    /// One line, free of control characters.
    public var text: String
    /// Milliseconds since 1970 by the author's wall clock.
    public var sentAt: Double

    /// A value of these fields.
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
