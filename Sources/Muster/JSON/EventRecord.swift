import FoundationEssentials

/// An event in its JSON form, as documented in `docs/EVENTS.md`. The fields are encoded in the
/// order of their declarations.
public struct EventRecord: Codable, Equatable, Sendable {
  /// The fields of the event; the case determines the value of `event`.
  public var body: Body
  /// Seconds since the process started; three decimals in JSON.
  public var t: Double
  /// The channel's name; nil, and omitted from the JSON, for events of the whole node.
  public var channel: String?

  /// The fields of each kind of event.
  public enum Body: Equatable, Sendable {
    case ready(ReadyRecord)
    case memberJoined(MemberRecord)
    case memberUpdated(MemberRecord)
    case memberLeft(MemberRecord, reason: String)
    case callStarted(CallRecord)
    case callJoined(CallRecord)
    case callLeft(CallRecord)
    case callEnded(CallRecord)
    case callHandedOver(CallRecord)
    case callModerated(CallModerationRecord)
    case callState(CallStateRecord)
    case callCPU(CallCPURecord)
    case callSpeaker(CallSpeakerRecord)
    case linkUp(LinkRecord)
    case linkDown(LinkRecord)
    case firstFrame(FirstFrameRecord)
    case layer(LayerRecord)
    case message(MessageRecord)
    case statistics(StatisticsRecord)
    case warning(NoticeRecord)
    case error(NoticeRecord)
  }

  /// The name of an event, the value of `event`.
  public enum Name: String, Codable, Sendable, CaseIterable {
    case ready
    case memberJoined = "member.joined"
    case memberUpdated = "member.updated"
    case memberLeft = "member.left"
    case callStarted = "call.started"
    case callJoined = "call.joined"
    case callLeft = "call.left"
    case callEnded = "call.ended"
    case callHandedOver = "call.handed-over"
    case callModerated = "call.moderated"
    case callState = "call.state"
    case callCPU = "call.cpu"
    case callSpeaker = "call.speaker"
    case linkUp = "link.up"
    case linkDown = "link.down"
    case firstFrame = "media.first-frame"
    case layer, message
    case statistics = "stats"
    case warning, error
  }

  /// Creates an event of `channel`, or of the whole node if `channel` is nil.
  public init(_ body: Body, t: Double, channel: String? = nil) {
    self.body = body
    self.t = t
    self.channel = channel
  }

  /// Parses one line of JSON; nil if the line is not a known event.
  public init?(json: [UInt8]) {
    guard let record = try? JSONDecoder().decode(EventRecord.self, from: Data(json)) else {
      return nil
    }
    self = record
  }

  /// The event as a JSON object.
  public var json: JSONValue { JSONValue(encoding: self) }

  private enum CodingKeys: String, CodingKey { case event, t, channel, reason }

  /// Encodes the fields in the documented order.
  public func encode(to encoder: any Encoder) throws {
    var fields = encoder.container(keyedBy: CodingKeys.self)
    try fields.encode(name, forKey: .event)
    try fields.encode(t, forKey: .t)
    if let channel { try fields.encode(channel, forKey: .channel) }
    switch body {
    case .ready(let record): try record.encode(to: encoder)
    case .memberJoined(let record), .memberUpdated(let record): try record.encode(to: encoder)
    case .memberLeft(let record, let reason):
      try record.encode(to: encoder)
      try fields.encode(reason, forKey: .reason)
    case .callStarted(let record), .callJoined(let record), .callLeft(let record),
      .callEnded(let record), .callHandedOver(let record):
      try record.encode(to: encoder)
    case .callModerated(let record): try record.encode(to: encoder)
    case .callState(let record): try record.encode(to: encoder)
    case .callCPU(let record): try record.encode(to: encoder)
    case .callSpeaker(let record): try record.encode(to: encoder)
    case .linkUp(let record), .linkDown(let record): try record.encode(to: encoder)
    case .firstFrame(let record): try record.encode(to: encoder)
    case .layer(let record): try record.encode(to: encoder)
    case .message(let record): try record.encode(to: encoder)
    case .statistics(let record): try record.encode(to: encoder)
    case .warning(let record), .error(let record): try record.encode(to: encoder)
    }
  }

  /// Decodes the fields; unknown fields are ignored.
  public init(from decoder: any Decoder) throws {
    let fields = try decoder.container(keyedBy: CodingKeys.self)
    t = try fields.decode(Double.self, forKey: .t)
    channel = try fields.decodeIfPresent(String.self, forKey: .channel)
    switch try fields.decode(Name.self, forKey: .event) {
    case .ready: body = .ready(try ReadyRecord(from: decoder))
    case .memberJoined: body = .memberJoined(try MemberRecord(from: decoder))
    case .memberUpdated: body = .memberUpdated(try MemberRecord(from: decoder))
    case .memberLeft:
      body = .memberLeft(
        try MemberRecord(from: decoder), reason: try fields.decode(String.self, forKey: .reason))
    case .callStarted: body = .callStarted(try CallRecord(from: decoder))
    case .callJoined: body = .callJoined(try CallRecord(from: decoder))
    case .callLeft: body = .callLeft(try CallRecord(from: decoder))
    case .callEnded: body = .callEnded(try CallRecord(from: decoder))
    case .callHandedOver: body = .callHandedOver(try CallRecord(from: decoder))
    case .callModerated: body = .callModerated(try CallModerationRecord(from: decoder))
    case .callState: body = .callState(try CallStateRecord(from: decoder))
    case .callCPU: body = .callCPU(try CallCPURecord(from: decoder))
    case .callSpeaker: body = .callSpeaker(try CallSpeakerRecord(from: decoder))
    case .linkUp: body = .linkUp(try LinkRecord(from: decoder))
    case .linkDown: body = .linkDown(try LinkRecord(from: decoder))
    case .firstFrame: body = .firstFrame(try FirstFrameRecord(from: decoder))
    case .layer: body = .layer(try LayerRecord(from: decoder))
    case .message: body = .message(try MessageRecord(from: decoder))
    case .statistics: body = .statistics(try StatisticsRecord(from: decoder))
    case .warning: body = .warning(try NoticeRecord(from: decoder))
    case .error: body = .error(try NoticeRecord(from: decoder))
    }
  }

  /// The event's name.
  public var name: Name {
    switch body {
    case .ready: .ready
    case .memberJoined: .memberJoined
    case .memberUpdated: .memberUpdated
    case .memberLeft: .memberLeft
    case .callStarted: .callStarted
    case .callJoined: .callJoined
    case .callLeft: .callLeft
    case .callEnded: .callEnded
    case .callHandedOver: .callHandedOver
    case .callModerated: .callModerated
    case .callState: .callState
    case .callCPU: .callCPU
    case .callSpeaker: .callSpeaker
    case .linkUp: .linkUp
    case .linkDown: .linkDown
    case .firstFrame: .firstFrame
    case .layer: .layer
    case .message: .message
    case .statistics: .statistics
    case .warning: .warning
    case .error: .error
    }
  }
}
