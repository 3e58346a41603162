/// Everything the page shows besides pictures, as it is at one moment.
public struct ViewSnapshot: Codable, Sendable, Equatable {
  public var own: Own
  /// The channel's name.
  public var channel: String
  /// Names of all channels this node is in.
  public var channels: [String]
  public var call: Call?
  /// The others in the channel, in the order in which the page keeps them.
  public var members: [Member]
  /// The newest of what was written, in the order that all members see.
  public var messages: [Message]
  /// Warnings still standing; the page shows each once.
  public var notices: [String]
  /// The channels besides the first, which the page may show in its place.
  public var others: [Room]

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
    public var channel: String
    public var own: Own
    public var call: Call?
    public var members: [Member]
    public var messages: [Message]

    private enum CodingKeys: String, CodingKey {
      case channel
      case own = "self"
      case call, members, messages
    }
  }

  /// This node.
  public struct Own: Codable, Sendable, Equatable {
    public var id: String
    public var name: String
    public var role: String
    /// Whether the role allows to start a call.
    public var mayStart: Bool
    /// Whether it allows to send sound and pictures.
    public var maySend: Bool
    public var inCall: Bool
    public var audioMuted: Bool
    public var videoMuted: Bool
    public var speaking: Bool
    /// Whether there is a video source at all, muted or not.
    public var hasVideo: Bool
    public var hasAudio: Bool

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
    public var id: String
    public var initiator: String
    /// Wall time in milliseconds since 1970.
    public var startedAt: Double
    public var participants: [String]

    public init(id: String, initiator: String, startedAt: Double, participants: [String]) {
      self.id = id
      self.initiator = initiator
      self.startedAt = startedAt
      self.participants = participants
    }
  }

  /// Another member of the channel and what its connection is like.
  public struct Member: Codable, Sendable, Equatable {
    public var id: String
    public var name: String
    public var role: String
    public var inCall: Bool
    public var audioMuted: Bool
    public var videoMuted: Bool
    public var speaking: Bool
    /// The number its frames come under; nil while it sends no picture.
    public var tile: UInt8?
    public var width: Int?
    public var height: Int?
    public var fps: Double?
    public var kbps: Double?
    public var rttMs: Double?
    public var lossPercent: Double?
    /// The layer it sends to this node, as text.
    public var layer: String?
    /// Why that layer and no better one.
    public var why: String?
    /// The name of the member through whom it is reached; nil where it is reached directly.
    public var via: String?

    public init(
      id: String, name: String, role: String, inCall: Bool, audioMuted: Bool, videoMuted: Bool,
      speaking: Bool, tile: UInt8? = nil, width: Int? = nil, height: Int? = nil,
      fps: Double? = nil, kbps: Double? = nil, rttMs: Double? = nil, lossPercent: Double? = nil,
      layer: String? = nil, why: String? = nil, via: String? = nil
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
    }
  }
  /// A message as the events of `muster join --json` have it, with the time in milliseconds.
  public struct Message: Codable, Sendable, Equatable {
    public var id: String
    public var from: String
    /// What the author calls itself, or called itself when it was last here.
    public var name: String
    /// Nil for everyone.
    public var to: String?
    public var toName: String?
    public var text: String
    /// Milliseconds since 1970 by the author's wall clock.
    public var sentAt: Double

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
