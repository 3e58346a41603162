/// `ready`: the node is bound and running.
public struct ReadyRecord: Codable, Equatable, Sendable {
  /// Grows when a field changes its meaning.
  public var schema: Int
  public var id: String
  public var key: String
  /// UDP addresses, `HOST:PORT`.
  public var listen: [String]
  /// The call page's URL; null without a page.
  public var view: String?
  public var channels: [String]
}

/// A member of a channel: `member.joined`, `member.updated`, `member.left`.
public struct MemberRecord: Codable, Equatable, Sendable {
  /// 16 hex digits.
  public var member: String
  /// 64 hex digits.
  public var key: String
  public var name: String
  public var role: String
  public var inCall: Bool
  /// Also while the member has no microphone.
  public var audioMuted: Bool
  /// Also while the member has no camera.
  public var videoMuted: Bool
  public var speaking: Bool
}

/// A channel's call: `call.started`, `call.joined`, `call.left`, `call.ended`, `call.handed-over`.
public struct CallRecord: Codable, Equatable, Sendable {
  /// 32 hex digits.
  public var call: String
  public var initiator: String
  /// Who joined or left; null in the others.
  public var member: String?
  /// Seconds since 1970 by the wall clock of the member that started it.
  public var startedAt: Double
  public var participants: [String]
  public var reason: String?
}

/// `call.state`: how far this node is into the call.
public struct CallStateRecord: Codable, Equatable, Sendable {
  public var state: String
}

/// `link.up` and `link.down`.
public struct LinkRecord: Codable, Equatable, Sendable {
  public var member: String
  /// `HOST:PORT`; null for a relayed link and in `link.down`.
  public var address: String?
  /// The relaying member; null for a direct link.
  public var via: String?
  public var reason: String?
}

/// `media.first-frame`.
public struct FirstFrameRecord: Codable, Equatable, Sendable {
  public var member: String
  /// Seconds since the link to the member came up.
  public var after: Double
  /// Pixels.
  public var width: Int
  public var height: Int
}

/// `layer`: the layer sent to a member or received from it has changed.
public struct LayerRecord: Codable, Equatable, Sendable {
  public var member: String
  /// `in` or `out`.
  public var direction: String
  /// `WxH@FPS` or `off`.
  public var from: String
  public var to: String
  public var why: String
}

/// `message`.
public struct MessageRecord: Codable, Equatable, Sendable {
  /// 16 hex digits.
  public var id: String
  public var from: String
  /// Null for everyone.
  public var to: String?
  public var text: String
  /// Seconds since 1970 by the author's wall clock.
  public var sentAt: Double
}

/// `warning` and `error`.
public struct NoticeRecord: Codable, Equatable, Sendable {
  public var message: String
  /// What to do; may be empty.
  public var hint: String
  /// The command that could not be done, if one caused it.
  public var command: String?
}

/// `stats`, once a second.
public struct StatisticsRecord: Codable, Equatable, Sendable {
  public var node: Node
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
    public var relays: [Relay]
  }

  /// A pair of members whose packets this node relays.
  public struct Relay: Codable, Equatable, Sendable {
    public var channel: String
    public var members: [String]
    /// kbit/s in both directions together.
    public var kbps: Double
  }

  /// One link.
  public struct Peer: Codable, Equatable, Sendable {
    public var channel: String
    public var member: String
    /// Milliseconds; null before the first answer.
    public var rttMs: Double?
    public var lossPercent: Double
    /// Reserved for the path's bandwidth estimate, in kbit/s.
    public var estimateKbps: Double?
    public var via: String?
    public var sent: Direction?
    public var received: Direction?
    public var latencyMs: Latency?

    enum CodingKeys: String, CodingKey {
      case channel, member, rttMs, lossPercent, estimateKbps, via
      case sent = "out"
      case received = "in"
      case latencyMs
    }
  }

  /// Media of one direction since the two came into the call together.
  public struct Direction: Codable, Equatable, Sendable {
    /// `WxH@FPS` or `off`.
    public var layer: String
    public var kbps: Double
    public var frames: Int
    public var framesLost: Int
    /// Gaps of more than 200 ms, and their sum in ms.
    public var freezes: Int
    public var frozenMs: Double
    public var audioLostPercent: Double
    public var why: String
  }

  /// Capture to decoded frame, in ms.
  public struct Latency: Codable, Equatable, Sendable {
    public var p50: Double
    public var p95: Double
  }
}

/// Counters by name, such as `link.wrongMAC`, as one JSON object in the order of the names given.
public struct CounterRecord: Codable, Equatable, Sendable {
  /// One counter.
  public struct Counter: Equatable, Sendable {
    public var name: String
    public var value: UInt64

    /// A counter of this name and value.
    public init(_ name: String, _ value: UInt64) {
      self.name = name
      self.value = value
    }
  }

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

  public init(from decoder: any Decoder) throws {
    let fields = try decoder.container(keyedBy: Key.self)
    counters = try fields.allKeys.map { key in
      Counter(key.stringValue, try fields.decode(UInt64.self, forKey: key))
    }.sorted { $0.name < $1.name }
  }

  public func encode(to encoder: any Encoder) throws {
    var fields = encoder.container(keyedBy: Key.self)
    for counter in counters {
      try fields.encode(counter.value, forKey: Key(stringValue: counter.name))
    }
  }
}
