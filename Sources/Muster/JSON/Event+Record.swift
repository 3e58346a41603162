import MusterBase
import MusterChannel
import MusterCore
import MusterWire

extension TimedEvent {
  /// The event in the form that is encoded as JSON.
  public var record: EventRecord {
    EventRecord(event.body, t: secondsSinceStart, channel: event.channel)
  }

  /// The event as one JSON object, fields in the order of `docs/EVENTS.md`.
  public var json: JSONValue { record.json }
}

extension Event {
  /// The channel's name; nil for events of the whole node.
  public var channel: String? {
    switch self {
    case .memberJoined(let channel, _), .memberUpdated(let channel, _),
      .memberLeft(let channel, _, _), .callStarted(let channel, _), .callJoined(let channel, _, _),
      .callLeft(let channel, _, _, _), .callEnded(let channel, _, _),
      .callHandedOver(let channel, _), .callModerated(let channel, _, _),
      .message(let channel, _), .callState(let channel, _),
      .callCPU(let channel, _), .callSpeaker(let channel, _), .linkUp(let channel, _, _, _),
      .linkDown(let channel, _, _),
      .firstFrame(let channel, _, _, _, _), .layer(let channel, _, _, _, _, _, _):
      channel
    case .statistics, .warning, .error: nil
    }
  }

  var body: EventRecord.Body {
    switch self {
    case .memberJoined(_, let member): .memberJoined(MemberRecord(member))
    case .memberUpdated(_, let member): .memberUpdated(MemberRecord(member))
    case .memberLeft(_, let member, let reason):
      .memberLeft(MemberRecord(member), reason: reason.rawValue)
    case .callStarted(_, let call): .callStarted(CallRecord(call))
    case .callJoined(_, let call, let member): .callJoined(CallRecord(call, member: member))
    case .callLeft(_, let call, let member, let reason):
      .callLeft(CallRecord(call, member: member, reason: reason.rawValue))
    case .callEnded(_, let call, let reason): .callEnded(CallRecord(call, [], reason: reason))
    case .callHandedOver(_, let call): .callHandedOver(CallRecord(call))
    case .callModerated(_, let moderation, let author):
      .callModerated(CallModerationRecord(moderation, by: author))
    case .callState(_, let state): .callState(CallStateRecord(state: state.rawValue))
    case .callCPU(_, let step): .callCPU(CallCPURecord(step: step))
    case .callSpeaker(_, let member): .callSpeaker(CallSpeakerRecord(member: member?.short))
    case .message(_, let message): .message(MessageRecord(message))
    case .linkUp(_, let member, let address, let via):
      .linkUp(
        LinkRecord(member: member.short, address: address?.description, via: via?.short))
    case .linkDown(_, let member, let reason):
      .linkDown(LinkRecord(member: member.short, reason: reason))
    case .firstFrame(_, let member, let stream, let after, let size):
      .firstFrame(
        FirstFrameRecord(
          member: member.short, stream: stream, after: after.inSeconds, width: size.width,
          height: size.height))
    case .layer(_, let member, let stream, let direction, let from, let to, let why):
      .layer(
        LayerRecord(
          member: member.short, stream: stream, direction: direction.rawValue,
          from: LayerRecord.text(from), to: LayerRecord.text(to), why: why))
    case .statistics(let statistics): .statistics(StatisticsRecord(statistics))
    case .warning(let error): .warning(NoticeRecord(error, command: nil))
    case .error(let error, let command): .error(NoticeRecord(error, command: command))
    }
  }
}

extension LayerRecord {
  static func text(_ layer: VideoLayer?) -> String { layer?.description ?? "off" }
}

extension MemberRecord {
  /// Creates the record; a member without an audio source is reported as audio-muted, one without a
  /// camera as video-muted.
  public init(_ member: Member) {
    self.init(
      member: member.id.short, key: member.id.key.hex, name: member.name, role: member.role.name,
      inCall: member.flags.contains(.inCall), audioMuted: member.isSilent,
      videoMuted: member.isInvisible,
      speaking: member.flags.contains(.speaking))
  }
}

extension Member {
  /// Whether the member sends no audio, because it is muted or has no audio source.
  public var isSilent: Bool { flags.contains(.audioMuted) || !flags.contains(.audio) }

  /// Whether the member sends no camera video, because it is muted or has no camera stream.
  public var isInvisible: Bool { flags.contains(.videoMuted) || !hasCamera }
}

extension CallRecord {
  init(_ call: ActiveCall, member: NodeID? = nil, reason: String? = nil) {
    self.init(call.info, call.participants, member: member, reason: reason)
  }

  init(
    _ call: CallInfo, _ participants: [NodeID], member: NodeID? = nil, reason: String? = nil
  ) {
    self.init(
      call: call.id.description, initiator: call.initiator.short, member: member?.short,
      startedAt: Double(call.startedAt) / 1000, participants: participants.map(\.short),
      reason: reason)
  }
}

extension CallModerationRecord {
  init(_ moderation: Moderation, by author: NodeID) {
    let muted = moderation.actions.muted
    self.init(
      call: moderation.call.description, member: moderation.member.short, by: author.short,
      muted: Command.Media.allCases.filter { muted.contains($0.own) }.map(\.rawValue),
      removed: moderation.actions.contains(.remove))
  }
}

extension MessageRecord {
  init(_ message: TextMessage) {
    self.init(
      id: String(message.id.hex.prefix(16)), from: message.from.short, to: message.to?.short,
      text: message.text, sentAt: Double(message.sentAt) / 1000)
  }
}

extension NoticeRecord {
  init(_ error: MusterError, command: String?) {
    self.init(message: error.message, hint: error.hint, command: command)
  }
}

extension StatisticsRecord {
  init(_ statistics: Statistics) {
    self.init(
      node: Node(
        cpu: statistics.cpu, rssMB: statistics.residentMegabytes,
        uplinkKbps: statistics.uplinkKilobitsPerSecond,
        uplinkLimitKbps: statistics.uplinkLimitKilobitsPerSecond,
        relays: statistics.relayed.map { relayed in
          Relay(
            channel: relayed.channel, members: relayed.members.map(\.short),
            kbps: relayed.kilobitsPerSecond)
        }),
      peers: statistics.peers.map { Peer($0) }, counters: CounterRecord(statistics.counters))
  }
}

extension StatisticsRecord.Peer {
  init(_ peer: Statistics.Peer) {
    self.init(
      channel: peer.channel, member: peer.member.short, rttMs: peer.roundTrip?.inMilliseconds,
      lossPercent: peer.lossPercent, estimateKbps: peer.estimatedKilobitsPerSecond,
      queueMs: peer.queueingDelay?.inMilliseconds,
      via: peer.via?.short, sent: peer.sent.map { .init($0) },
      received: peer.received.map { .init($0) },
      latencyMs: peer.latency.map { StatisticsRecord.Latency($0) },
      streams: peer.streams.map { stream in
        StatisticsRecord.Stream(
          stream: stream.name, sent: stream.sent.map { .init($0) },
          received: stream.received.map { .init($0) },
          latencyMs: stream.latency.map { StatisticsRecord.Latency($0) })
      })
  }
}

extension StatisticsRecord.Latency {
  init(_ latency: (p50: Duration, p95: Duration)) {
    self.init(p50: latency.p50.inMilliseconds, p95: latency.p95.inMilliseconds)
  }
}

extension StatisticsRecord.Direction {
  init(_ direction: Statistics.Direction) {
    self.init(
      layer: LayerRecord.text(direction.layer), kbps: direction.kilobitsPerSecond,
      frames: Int(clamping: direction.frames), framesLost: Int(clamping: direction.framesLost),
      freezes: Int(clamping: direction.freezes),
      frozenMs: direction.totalFreezesDuration.inMilliseconds,
      audioLostPercent: direction.audioLostPercent, why: direction.why)
  }
}

extension JoinedChannelRecord {
  init(_ setup: ChannelSetup) {
    self.init(
      channel: setup.name, id: setup.id.description, kind: setup.genesis == nil ? .open : .created)
  }
}

extension MusterNode {
  /// The `ready` event, the first line of a node's JSON output; `page` is the call page's URL, nil
  /// without a page.
  public nonisolated func readyEvent(page: String?) -> EventRecord {
    EventRecord(
      .ready(
        ReadyRecord(
          schema: 1, id: id.short, key: id.key.hex, listen: listening.map(\.description),
          view: page, channels: joinedAtStart.map(\.channel), joined: joinedAtStart)),
      t: secondsToReady)
  }
}
