import MusterBase
import MusterChannel
import MusterCore
import MusterWire

extension TimedEvent {
  /// The event as one JSON object, fields in the order of `docs/EVENTS.md`.
  public var json: JSONValue {
    let (name, channel, fields) = event.parts
    var all: [(String, JSONValue)] = [
      ("event", .string(name)), ("t", .number(secondsSinceStart)),
    ]
    if let channel { all.append(("channel", .string(channel))) }
    return .object(all + fields)
  }
}

extension Event {
  typealias Parts = (name: String, channel: String?, fields: [(String, JSONValue)])

  var parts: Parts {
    switch self {
    case .memberJoined(let channel, let member): ("member.joined", channel, Self.fields(member))
    case .memberUpdated(let channel, let member): ("member.updated", channel, Self.fields(member))
    case .memberLeft(let channel, let member, let reason):
      ("member.left", channel, Self.fields(member) + [("reason", .string(reason.rawValue))])
    case .callStarted, .callJoined, .callLeft, .callEnded, .callHandedOver, .callState: callParts
    case .message(let channel, let message): ("message", channel, Self.fields(message))
    case .linkUp(let channel, let member, let address, let via):
      (
        "link.up", channel,
        [
          ("member", .string(member.short)),
          ("address", address.map { .string($0.description) } ?? .null),
          ("via", via.map { .string($0.short) } ?? .null), ("reason", .null),
        ]
      )
    case .linkDown(let channel, let member, let reason):
      (
        "link.down", channel,
        [
          ("member", .string(member.short)), ("address", .null), ("via", .null),
          ("reason", .string(reason)),
        ]
      )
    case .firstFrame(let channel, let member, let stream, let after, let size):
      (
        "media.first-frame", channel,
        [
          ("member", .string(member.short)), ("stream", .string(stream)),
          ("after", .number(after.inSeconds)),
          ("width", .integer(Int64(size.width))), ("height", .integer(Int64(size.height))),
        ]
      )
    case .layer(let channel, let member, let stream, let direction, let from, let to, let why):
      (
        "layer", channel,
        [
          ("member", .string(member.short)), ("stream", .string(stream)),
          ("direction", .string(direction.rawValue)), ("from", Self.value(from)),
          ("to", Self.value(to)), ("why", .string(why)),
        ]
      )
    case .statistics(let statistics): ("stats", nil, statistics.fields)
    case .warning(let error): ("warning", nil, Self.fields(error, command: nil))
    case .error(let error, let command): ("error", nil, Self.fields(error, command: command))
    }
  }

  private var callParts: Parts {
    switch self {
    case .callStarted(let channel, let call):
      ("call.started", channel, Self.fields(call.info, call.participants, member: nil, reason: nil))
    case .callJoined(let channel, let call, let member):
      (
        "call.joined", channel,
        Self.fields(call.info, call.participants, member: member, reason: nil)
      )
    case .callLeft(let channel, let call, let member, let reason):
      (
        "call.left", channel,
        Self.fields(call.info, call.participants, member: member, reason: reason.rawValue)
      )
    case .callEnded(let channel, let call, let reason):
      ("call.ended", channel, Self.fields(call, [], member: nil, reason: reason))
    case .callHandedOver(let channel, let call):
      (
        "call.handed-over", channel,
        Self.fields(call.info, call.participants, member: nil, reason: nil)
      )
    case .callState(let channel, let state):
      ("call.state", channel, [("state", .string(state.rawValue))])
    default: preconditionFailure("only call events come here")
    }
  }

  private static func value(_ layer: VideoLayer?) -> JSONValue {
    .string(layer?.description ?? "off")
  }

  static func fields(_ member: Member) -> [(String, JSONValue)] {
    [
      ("member", .string(member.id.short)), ("key", .string(member.id.key.hex)),
      ("name", .string(member.name)), ("role", .string(member.role.name)),
      ("inCall", .bool(member.flags.contains(.inCall))),
      ("audioMuted", .bool(member.flags.contains(.audioMuted))),
      ("videoMuted", .bool(member.flags.contains(.videoMuted))),
      ("speaking", .bool(member.flags.contains(.speaking))),
    ]
  }

  private static func fields(
    _ call: CallInfo, _ participants: [NodeID], member: NodeID?, reason: String?
  ) -> [(String, JSONValue)] {
    [
      ("call", .string(call.id.description)), ("initiator", .string(call.initiator.short)),
      ("member", member.map { .string($0.short) } ?? .null),
      ("startedAt", .number(Double(call.startedAt) / 1000)),
      ("participants", .array(participants.map { .string($0.short) })),
      ("reason", reason.map { .string($0) } ?? .null),
    ]
  }

  private static func fields(_ message: TextMessage) -> [(String, JSONValue)] {
    [
      ("id", .string(String(message.id.hex.prefix(16)))), ("from", .string(message.from.short)),
      ("to", message.to.map { .string($0.short) } ?? .null), ("text", .string(message.text)),
      ("sentAt", .number(Double(message.sentAt) / 1000)),
    ]
  }

  private static func fields(_ error: MusterError, command: String?) -> [(String, JSONValue)] {
    [
      ("message", .string(error.message)), ("hint", .string(error.hint)),
      ("command", command.map { .string($0) } ?? .null),
    ]
  }
}

extension Statistics {
  fileprivate var fields: [(String, JSONValue)] {
    [
      (
        "node",
        .object([
          ("cpu", .number(cpu)), ("rssMB", .number(residentMegabytes)),
          ("uplinkKbps", .number(uplinkKilobitsPerSecond)),
          ("relays", .array(relayed.map(\.json))),
        ])
      ), ("peers", .array(peers.map(\.json))),
    ]
  }
}

extension Statistics.Relayed {
  fileprivate var json: JSONValue {
    .object([
      ("channel", .string(channel)), ("members", .array(members.map { .string($0.short) })),
      ("kbps", .number(kilobitsPerSecond)),
    ])
  }
}

extension Statistics.Peer {
  fileprivate var json: JSONValue {
    .object([
      ("channel", .string(channel)), ("member", .string(member.short)),
      ("rttMs", roundTrip.map { .number($0.inMilliseconds) } ?? .null),
      ("lossPercent", .number(lossPercent)), ("estimateKbps", .null),
      ("via", via.map { .string($0.short) } ?? .null),
      ("out", sent?.json ?? .null), ("in", received?.json ?? .null),
      ("latencyMs", Self.json(latency)), ("streams", .array(streams.map(\.json))),
    ])
  }

  fileprivate static func json(_ latency: (p50: Duration, p95: Duration)?) -> JSONValue {
    guard let latency else { return .null }
    return .object([
      ("p50", .number(latency.p50.inMilliseconds)), ("p95", .number(latency.p95.inMilliseconds)),
    ])
  }
}

extension Statistics.Stream {
  fileprivate var json: JSONValue {
    .object([
      ("stream", .string(name)), ("out", sent?.json ?? .null), ("in", received?.json ?? .null),
      ("latencyMs", Statistics.Peer.json(latency)),
    ])
  }
}

extension Statistics.Direction {
  fileprivate var json: JSONValue {
    .object([
      ("layer", .string(layer?.description ?? "off")), ("kbps", .number(kilobitsPerSecond)),
      ("frames", .integer(Int64(clamping: frames))),
      ("framesLost", .integer(Int64(clamping: framesLost))),
      ("freezes", .integer(Int64(clamping: freezes))),
      ("frozenMs", .number(frozen.inMilliseconds)),
      ("audioLostPercent", .number(audioLostPercent)), ("why", .string(why)),
    ])
  }
}

extension MusterNode {
  /// The first line of a node's output; `page` is the call page's URL.
  public nonisolated func readyEvent(page: String?) -> JSONValue {
    .object([
      ("event", .string("ready")), ("t", .number(secondsToReady)), ("schema", .integer(1)),
      ("id", .string(id.short)), ("key", .string(id.key.hex)),
      ("listen", .array(listening.map { .string($0.description) })),
      ("view", page.map { .string($0) } ?? .null),
      ("channels", .array(channelNames.map { .string($0) })),
    ])
  }
}
