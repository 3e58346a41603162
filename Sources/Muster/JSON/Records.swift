/// `ready`: the node is bound and running.
public struct ReadyRecord: Codable, Equatable, Sendable {
  /// Grows when a field changes its meaning.
  public var schema: Int
  /// This node's id, 16 hex digits.
  public var id: String
  /// The full key, 64 hex digits.
  public var key: String
  /// UDP addresses, `HOST:PORT`.
  public var listen: [String]
  /// The call page's URL; null without a page.
  public var view: String?
  /// Names of the channels joined.
  public var channels: [String]
}

/// A member of a channel: `member.joined`, `member.updated`, `member.left`.
public struct MemberRecord: Codable, Equatable, Sendable {
  /// 16 hex digits.
  public var member: String
  /// 64 hex digits.
  public var key: String
  /// The name that the member chose.
  public var name: String
  /// `owner`, `presenter`, `attendee`, `consumer` or `none`.
  public var role: String
  /// Whether it is in a call.
  public var inCall: Bool
  /// Also while the member has no microphone.
  public var audioMuted: Bool
  /// Also while the member has no camera.
  public var videoMuted: Bool
  /// By the member's own voice detector; false outside a call.
  public var speaking: Bool
}

/// A channel's call: `call.started`, `call.joined`, `call.left`, `call.ended`, `call.handed-over`.
public struct CallRecord: Codable, Equatable, Sendable {
  /// 32 hex digits.
  public var call: String
  /// Id of the member that leads the call.
  public var initiator: String
  /// Id of the member that joined or left; null in the other records.
  public var member: String?
  /// Seconds since 1970 by the wall clock of the member that started it.
  public var startedAt: Double
  /// Ids of the participants, sorted.
  public var participants: [String]
  /// Why the member left or the call ended; null in the others.
  public var reason: String?
}

/// `call.state`: this node's own state in the call.
public struct CallStateRecord: Codable, Equatable, Sendable {
  /// `connecting`, `connected`, `reconnecting` or `disconnected`.
  public var state: String
}

/// `link.up` and `link.down`.
public struct LinkRecord: Codable, Equatable, Sendable {
  /// The member's id, 16 hex digits.
  public var member: String
  /// `HOST:PORT`; null for a relayed link and in `link.down`.
  public var address: String?
  /// The relaying member; null for a direct link.
  public var via: String?
  /// `link.down`: `left`, `timedOut`, `replaced` or `local`; `link.up`: null.
  public var reason: String?
}

/// `media.first-frame`.
public struct FirstFrameRecord: Codable, Equatable, Sendable {
  /// The member's id, 16 hex digits.
  public var member: String
  /// The name of the member's video stream.
  public var stream: String
  /// Seconds since the link to the member came up.
  public var after: Double
  /// Pixels.
  public var width: Int
  /// Pixels.
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
  /// `WxH@FPS` or `off`.
  public var from: String
  /// `WxH@FPS` or `off`.
  public var to: String
  /// Why the layer is what it is.
  public var why: String
}

/// `message`.
public struct MessageRecord: Codable, Equatable, Sendable {
  /// 16 hex digits.
  public var id: String
  /// Id of the author, which may have left since.
  public var from: String
  /// Id of the recipient; null for a message to all members.
  public var to: String?
  /// One line, free of control characters.
  public var text: String
  /// Seconds since 1970 by the author's wall clock.
  public var sentAt: Double
}

/// `warning` and `error`.
public struct NoticeRecord: Codable, Equatable, Sendable {
  /// The problem, in one sentence.
  public var message: String
  /// Advice; may be empty.
  public var hint: String
  /// The command that could not be done, if one caused it.
  public var command: String?
}

/// `stats`, once a second.
public struct StatisticsRecord: Codable, Equatable, Sendable {
  /// The whole process.
  public var node: Node
  /// One for each link, in the order of ids.
  public var peers: [Peer]
  /// The engines' and queues' counters that are not 0, since the start.
  public var counters: CounterRecord

  /// The whole process.
  public struct Node: Codable, Equatable, Sendable {
    /// Cores in use over the last second.
    public var cpu: Double
    /// Resident memory in 10^6 bytes.
    public var rssMB: Double
    /// UDP payload sent, in kbit/s.
    public var uplinkKbps: Double
    /// Pairs of members for whom this node relays.
    public var relays: [Relay]
  }

  /// A pair of members whose packets this node relays.
  public struct Relay: Codable, Equatable, Sendable {
    /// The channel's name.
    public var channel: String
    /// The two ids.
    public var members: [String]
    /// kbit/s in both directions together.
    public var kbps: Double
  }

  /// One link.
  public struct Peer: Codable, Equatable, Sendable {
    /// The channel's name.
    public var channel: String
    /// The member's id, 16 hex digits.
    public var member: String
    /// Milliseconds; null before the first answer.
    public var rttMs: Double?
    /// Percent of what this node sends, as the member reports it, smoothed.
    public var lossPercent: Double
    /// Reserved for the path's bandwidth estimate, in kbit/s.
    public var estimateKbps: Double?
    /// Reserved for the path's queueing delay, in ms.
    public var queueMs: Double?
    /// The relaying member; null for a direct link.
    public var via: String?
    /// `out`: media to the member; null while not in a call together.
    public var sent: Direction?
    /// `in`: media from the member; null while not in a call together.
    public var received: Direction?
    /// Null unless the member sends the test pattern and shares this machine's boot clock.
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
    /// As its owner calls it.
    public var stream: String
    /// `out`: null where this node has no such stream.
    public var sent: Direction?
    /// `in`: null where the member has none.
    public var received: Direction?
    /// As for the camera.
    public var latencyMs: Latency?

    enum CodingKeys: String, CodingKey {
      case stream
      case sent = "out"
      case received = "in"
      case latencyMs
    }
  }

  /// Media of one direction since the two came into the call together.
  public struct Direction: Codable, Equatable, Sendable {
    /// `WxH@FPS` or `off`.
    public var layer: String
    /// Payload of audio and video over the last second, in kbit/s.
    public var kbps: Double
    /// Frames sent, or received whole.
    public var frames: Int
    /// Frames that were skipped; 0 when sending.
    public var framesLost: Int
    /// Gaps of more than 200 ms, and their sum in ms.
    public var freezes: Int
    /// Sum of the freezes, in ms.
    public var frozenMs: Double
    /// Percent of the audio packets that were not there in time.
    public var audioLostPercent: Double
    /// Why the layer is what it is.
    public var why: String
  }

  /// Capture to decoded frame, in ms.
  public struct Latency: Codable, Equatable, Sendable {
    /// The median of the last 300 frames.
    public var p50: Double
    /// The 95th percentile of the last 300 frames.
    public var p95: Double
  }
}

/// Counters by name, such as `link.wrongMAC`, as one JSON object in the order of the names given.
public struct CounterRecord: Codable, Equatable, Sendable {
  /// One counter.
  public struct Counter: Equatable, Sendable {
    /// Such as `link.wrongMAC`.
    public var name: String
    /// Since the start.
    public var value: UInt64

    /// A counter of this name and value.
    public init(_ name: String, _ value: UInt64) {
      self.name = name
      self.value = value
    }
  }

  /// The counters that are not 0.
  public var counters: [Counter]

  /// Keeps those that are not 0.
  public init(_ counters: [Counter] = []) { self.counters = counters.filter { $0.value > 0 } }

  /// The counter's value; 0 for one that is not there.
  public subscript(name: String) -> UInt64 {
    counters.first { $0.name == name }?.value ?? 0
  }

  private struct Key: CodingKey {
    var stringValue: String
    var intValue: Int? { nil }
    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
  }

  /// Reads the fields; unknown ones are ignored.
  public init(from decoder: any Decoder) throws {
    let fields = try decoder.container(keyedBy: Key.self)
    counters = try fields.allKeys.map { key in
      Counter(key.stringValue, try fields.decode(UInt64.self, forKey: key))
    }.sorted { $0.name < $1.name }
  }

  /// Writes the fields in the order of the contract.
  public func encode(to encoder: any Encoder) throws {
    var fields = encoder.container(keyedBy: Key.self)
    for counter in counters {
      try fields.encode(counter.value, forKey: Key(stringValue: counter.name))
    }
  }
}
