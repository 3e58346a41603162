/// `ready`: the node is bound and running.
public struct ReadyRecord: Codable, Equatable, Sendable {
  /// The version of the format, incremented when a field changes its meaning.
  public var schema: Int
  /// This node's id, 16 hex digits.
  public var id: String
  /// The full key, 64 hex digits.
  public var key: String
  /// The UDP addresses that the node is bound to, as `HOST:PORT`.
  public var listen: [String]
  /// The call page's URL; null without a page.
  public var view: String?
  /// The names of the joined channels.
  public var channels: [String]
  /// The joined channels, in the same order.
  public var joined: [JoinedChannelRecord]
}

/// A channel in `ready`, with what tells it from others of its name.
public struct JoinedChannelRecord: Codable, Equatable, Sendable {
  /// The channel's name on this node.
  public var channel: String
  /// The channel's id, 16 hex digits.
  public var id: String
  /// `created` for a channel with an owner and roles, otherwise `open`.
  public var kind: Administration.ChannelSummary.Kind
}

/// A member of a channel: `member.joined`, `member.updated`, `member.left`.
public struct MemberRecord: Codable, Equatable, Sendable {
  /// The member's id, 16 hex digits.
  public var member: String
  /// The member's full key, 64 hex digits.
  public var key: String
  /// The name that the member chose.
  public var name: String
  /// `owner`, `presenter`, `attendee`, `consumer` or `none`.
  public var role: String
  /// Whether the member is in the call.
  public var inCall: Bool
  /// Whether the microphone is muted or missing.
  public var audioMuted: Bool
  /// Whether the camera is off or missing.
  public var videoMuted: Bool
  /// Whether the member is speaking, as detected by the member; false outside a call.
  public var speaking: Bool
}

/// A channel's call: `call.started`, `call.joined`, `call.left`, `call.ended`, `call.handed-over`.
public struct CallRecord: Codable, Equatable, Sendable {
  /// The call's id, 32 hex digits.
  public var call: String
  /// The id of the member that leads the call, 16 hex digits.
  public var initiator: String
  /// The id of the member that joined or left; null in the other records.
  public var member: String?
  /// Seconds since 1970 by the wall clock of the member that started the call.
  public var startedAt: Double
  /// The ids of the participants, sorted.
  public var participants: [String]
  /// The reason why the member left or the call ended; null in the other records.
  public var reason: String?
}

/// `call.moderated`: a member is muted in the call for everyone, or removed from it.
public struct CallModerationRecord: Codable, Equatable, Sendable {
  /// The call's id, 32 hex digits.
  public var call: String
  /// The id of the member that is muted or removed, 16 hex digits.
  public var member: String
  /// The id of the member that does so, 16 hex digits.
  public var by: String
  /// The muted media: `audio`, `video`, `share`.
  public var muted: [String]
  /// Whether the member is removed from the call.
  public var removed: Bool
}

/// `call.state`: this node's own state in the call.
public struct CallStateRecord: Codable, Equatable, Sendable {
  /// `connecting`, `connected`, `reconnecting` or `disconnected`.
  public var state: String
}

/// `call.cpu`: what this node gives up in the call for lack of CPU.
public struct CallCPURecord: Codable, Equatable, Sendable {
  /// The step, 0 for nothing to 8.
  public var step: Int
}

/// `call.speaker`: the dominant speaker of the call that this node is in.
public struct CallSpeakerRecord: Codable, Equatable, Sendable {
  /// The member's id, 16 hex digits; null after the former speaker has gone.
  public var member: String?
}

/// The fields of `link.up` and `link.down`.
public struct LinkRecord: Codable, Equatable, Sendable {
  /// The member's id, 16 hex digits.
  public var member: String
  /// `HOST:PORT`; null for a relayed link and in `link.down`.
  public var address: String?
  /// The relaying member's id; null for a direct link.
  public var via: String?
  /// The reason in `link.down`: `left`, `timed-out`, `replaced` or `local`; null in `link.up`.
  public var reason: String?
}

/// `media.first-frame`: the first decodable frame of a member's stream has arrived.
public struct FirstFrameRecord: Codable, Equatable, Sendable {
  /// The member's id, 16 hex digits.
  public var member: String
  /// The name of the member's video stream.
  public var stream: String
  /// Seconds since the link to the member came up.
  public var after: Double
  /// The frame's width in pixels.
  public var width: Int
  /// The frame's height in pixels.
  public var height: Int
}

/// `layer`: the layer sent to a member or received from it has changed.
public struct LayerRecord: Codable, Equatable, Sendable {
  /// The member's id, 16 hex digits.
  public var member: String
  /// The name of the video stream: this node's own for `out`, the member's for `in`.
  public var stream: String
  /// `in` or `out`.
  public var direction: String
  /// The previous layer, `WxH@FPS` or `off`.
  public var from: String
  /// The new layer, `WxH@FPS` or `off`.
  public var to: String
  /// The reason for the new layer, such as `receiver-request`; `docs/EVENTS.md` lists all.
  public var why: String
}

/// `message`: a text message.
public struct MessageRecord: Codable, Equatable, Sendable {
  /// The first 16 hex digits of the message's id.
  public var id: String
  /// The id of the author, which may have left.
  public var from: String
  /// The id of the recipient; null for a message to all members.
  public var to: String?
  /// The text of the message, one line without control characters.
  public var text: String
  /// Seconds since 1970 by the author's wall clock.
  public var sentAt: Double
}

/// The fields of `warning` and `error`.
public struct NoticeRecord: Codable, Equatable, Sendable {
  /// The problem, in one sentence.
  public var message: String
  /// Advice to the user; may be empty.
  public var hint: String
  /// The command that failed; null if no command caused the error.
  public var command: String?
}

/// `stats`: the statistics of the node and its links, once a second.
public struct StatisticsRecord: Codable, Equatable, Sendable {
  /// The statistics of the whole process.
  public var node: Node
  /// One entry for each link, in the order of member ids, then of channel ids.
  public var peers: [Peer]
  /// The non-zero counters of the engines and queues since the start.
  public var counters: CounterRecord

  /// The statistics of the whole process.
  public struct Node: Codable, Equatable, Sendable {
    /// CPU use over the last second, in cores.
    public var cpu: Double
    /// Resident memory in 10^6 bytes.
    public var rssMB: Double
    /// UDP payload sent over the last second, in kbit/s.
    public var uplinkKbps: Double
    /// What the node may send in all, as given or as learnt, in kbit/s of IP packets; null if no
    /// limit is known.
    public var uplinkLimitKbps: Double?
    /// The pairs of members that this node relays for.
    public var relays: [Relay]
  }

  /// A pair of members whose packets this node relays.
  public struct Relay: Codable, Equatable, Sendable {
    /// The channel's name.
    public var channel: String
    /// The ids of the two members.
    public var members: [String]
    /// The sum of both directions in kbit/s.
    public var kbps: Double
  }

  /// The statistics of one link.
  public struct Peer: Codable, Equatable, Sendable {
    /// The channel's name.
    public var channel: String
    /// The member's id, 16 hex digits.
    public var member: String
    /// The smoothed round-trip time in ms; null before the first answer.
    public var rttMs: Double?
    /// The smoothed packet loss from this node to the member, as reported by the member, in
    /// percent.
    public var lossPercent: Double
    /// The estimated bandwidth of the path to the member in kbit/s, counted in IP packets; null
    /// before the first report on media that this node sends.
    public var estimateKbps: Double?
    /// The queueing delay of the path to the member in ms; null like `estimateKbps`.
    public var queueMs: Double?
    /// The relaying member's id; null for a direct link.
    public var via: String?
    /// `out`: media to the member; null while not in a call together.
    public var sent: Direction?
    /// `in`: media from the member; null while not in a call together.
    public var received: Direction?
    /// The camera's latency; null unless the member sends the test pattern and shares the boot
    /// clock.
    public var latencyMs: Latency?
    /// Video streams besides the camera.
    public var streams: [Stream]

    enum CodingKeys: String, CodingKey {
      case channel, member, rttMs, lossPercent, estimateKbps, queueMs, via
      case sent = "out"
      case received = "in"
      case latencyMs, streams
    }
  }

  /// A video stream besides the camera, in both directions.
  public struct Stream: Codable, Equatable, Sendable {
    /// The name in the sender's offer.
    public var stream: String
    /// `out`: this node's stream of that name; null if there is none.
    public var sent: Direction?
    /// `in`: the member's stream of that name; null if there is none.
    public var received: Direction?
    /// The latency of the member's stream, as for the camera.
    public var latencyMs: Latency?

    enum CodingKeys: String, CodingKey {
      case stream
      case sent = "out"
      case received = "in"
      case latencyMs
    }
  }

  /// The media of one direction since both nodes joined the call.
  public struct Direction: Codable, Equatable, Sendable {
    /// The current layer, `WxH@FPS` or `off`.
    public var layer: String
    /// The payload bit rate of audio and video over the last second, in kbit/s.
    public var kbps: Double
    /// Frames sent, or received completely.
    public var frames: Int
    /// Frames that were not delivered, counted from gaps in the VP8 PictureID; 0 when sending.
    public var framesLost: Int
    /// The number of freezes: gaps between shown frames of more than three mean intervals and more
    /// than the mean and 150 ms.
    public var freezes: Int
    /// The total duration of the freezes in ms.
    public var frozenMs: Double
    /// The share of the member's frames of audio that were not played, in percent, also while it
    /// could not be reached; 0 when sending.
    public var audioLostPercent: Double
    /// The reason for the current layer.
    public var why: String
  }

  /// The latency from capture to decoded frame, in ms.
  public struct Latency: Codable, Equatable, Sendable {
    /// The median of the last 300 frames.
    public var p50: Double
    /// The 95th percentile of the last 300 frames.
    public var p95: Double
  }
}

/// Counters by name, encoded as one JSON object in the given order.
public struct CounterRecord: Codable, Equatable, Sendable {
  /// The name and value of a counter.
  public struct Counter: Equatable, Sendable {
    /// The name, such as `link.wrongMAC`.
    public var name: String
    /// The count since the start.
    public var value: UInt64

    /// A counter with this name and value.
    public init(_ name: String, _ value: UInt64) {
      self.name = name
      self.value = value
    }
  }

  /// The non-zero counters.
  public var counters: [Counter]

  /// Keeps only the non-zero counters.
  public init(_ counters: [Counter] = []) { self.counters = counters.filter { $0.value > 0 } }

  /// The value of a counter; 0 if it is not listed.
  public subscript(name: String) -> UInt64 {
    counters.first { $0.name == name }?.value ?? 0
  }

  private struct Key: CodingKey {
    var stringValue: String
    var intValue: Int? { nil }
    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
  }

  /// Decodes all fields as counters, sorted by name.
  public init(from decoder: any Decoder) throws {
    let fields = try decoder.container(keyedBy: Key.self)
    counters = try fields.allKeys.map { key in
      Counter(key.stringValue, try fields.decode(UInt64.self, forKey: key))
    }.sorted { $0.name < $1.name }
  }

  /// Encodes the counters in their order.
  public func encode(to encoder: any Encoder) throws {
    var fields = encoder.container(keyedBy: Key.self)
    for counter in counters {
      try fields.encode(counter.value, forKey: Key(stringValue: counter.name))
    }
  }
}
