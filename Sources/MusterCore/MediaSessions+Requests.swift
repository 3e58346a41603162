import MusterBase
import MusterMedia
import MusterWire

/// The requests for the video of others, of which the lowest-ranked rest beyond the most streams
/// that this node receives at once ("last N").
extension MediaSessions {
  /// Requests no more of a stream than `request`, by command. If `stream` is nil, that applies to
  /// every stream; if `member` is nil, to all current and future participants.
  mutating func watch(
    _ request: VideoRequest, stream: StreamID?, of member: NodeID?, isPinned: Bool,
    in channel: ChannelID, at now: Instant
  ) -> [Output] {
    let streams = stream.map { [$0] } ?? StreamID.all
    requests.watch(request, streams, of: member, isPinned: isPinned, in: channel)
    return updateRequests(at: now)
  }

  /// Requests what a viewer shows; nil if there is no viewer any more.
  mutating func show(_ streams: [ShownStream]?, at now: Instant) -> [Output] {
    requests.show(streams)
    return updateRequests(at: now)
  }

  /// Subscribes to the streams of which another request now holds, and expects what is requested
  /// and offered.
  mutating func updateRequests(at now: Instant) -> [Output] {
    var out: [Output] = []
    let replaced = replacedRequests()
    for index in 0..<sessions.count where sessions[at: index].call != nil {
      let link = sessions.keys[index]
      let wanted = StreamID.all.map { stream in
        let stream = MemberStream(link, stream)
        return replaced[stream] ?? requests[stream]
      }
      let changed = sessions.update(at: index) { $0.call?.request(wanted, at: now) ?? [] }
      if !changed.isEmpty { out.append(.control(changed, over: link)) }
      out += expectStreams(ofSessionAt: index, at: now)
    }
    return out
  }

  /// The streams of a channel that this node does not receive because of their rank, or of those
  /// for which it has CPU.
  func outrankedStreams(in channel: ChannelID) -> [MemberStream] {
    sessions.keys.filter { $0.channel == channel }.flatMap { link -> [MemberStream] in
      let wanted = sessions.index(of: link).flatMap { sessions[at: $0].call?.wanted } ?? []
      return zip(StreamID.all, wanted).filter { $1 == .outranked || $1 == .shortOfCPU }
        .map { MemberStream(link, $0.0) }
    }
  }

  /// The requests that replace others: those for streams that rest, since as many as this node
  /// receives rank higher, and those for which it is short of CPU. A stream that is not sent, such
  /// as that of a muted camera, does not count.
  private func replacedRequests() -> PeerTable<MemberStream, VideoRequest> {
    var replaced = PeerTable<MemberStream, VideoRequest>()
    let adaptation = local.streams.adaptation
    guard requests.maxStreams != nil || adaptation.step > .nothing else { return replaced }
    var ranked: [(rank: VideoRank, isSent: Bool)] = []
    for index in 0..<sessions.count {
      guard let call = sessions[at: index].call else { continue }
      for stream in StreamID.all {
        let stream = MemberStream(sessions.keys[index], stream)
        guard requests[stream].wantsVideo else { continue }
        ranked.append((rank(of: stream, call), call.sends(stream.stream)))
      }
    }
    ranked.sort { $0.rank.precedes($1.rank) }
    let most = min(requests.maxStreams ?? .max, ranked.count { $0.isSent })
    var received = 0
    for (rank, isSent) in ranked {
      if received >= requests.maxStreams ?? .max {
        replaced[rank.stream] = .outranked
        continue
      }
      if let limit = adaptation.limit(ofRank: received, among: most) {
        replaced[rank.stream] = requests[rank.stream].adapted(to: limit)
      }
      if isSent { received += 1 }
    }
    return replaced
  }

  private func rank(of stream: MemberStream, _ call: CallMedia) -> VideoRank {
    let member = stream.link.peer
    let kind: VideoRank.Kind =
      if requests.isPinned(stream) {
        .pinned
      } else if stream.stream == .screen {
        .screen
      } else if speakers[stream.link.channel]?.current == member {
        .dominantSpeaker
      } else if call.presence.isSpeaking {
        .speaking
      } else if let spokeAt = call.spokeAt {
        .spoke(at: spokeAt)
      } else {
        .other
      }
    return VideoRank(kind: kind, seniority: call.presence.seniority, stream: stream)
  }
}

/// The rank of a video among those that a node requests.
private struct VideoRank {
  /// What the rank depends on first.
  enum Kind {
    case pinned, screen, dominantSpeaker, speaking, other
    case spoke(at: Instant)

    /// The order of the kinds, and among those who spoke the latest first.
    var order: (Int, Int64) {
      switch self {
      case .pinned: (0, 0)
      case .screen: (1, 0)
      case .dominantSpeaker: (2, 0)
      case .speaking: (3, 0)
      case .spoke(let time): (4, -time.nanoseconds)
      case .other: (5, 0)
      }
    }
  }

  let kind: Kind
  /// The number of participants that have been in the call for longer: newcomers come last.
  let seniority: Int
  let stream: MemberStream

  func precedes(_ other: VideoRank) -> Bool {
    if kind.order != other.kind.order { return kind.order < other.kind.order }
    return (seniority, stream) < (other.seniority, other.stream)
  }
}
