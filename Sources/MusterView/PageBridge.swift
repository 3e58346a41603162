import Muster
import MusterBase
import MusterChannel
import MusterWire

/// Converts a node's events and frames for the page, and passes the page's commands to the node.
actor PageBridge {
  private let node: MusterNode
  private var statistics: Statistics?
  private var notices: [String] = []
  private var messages = PageMessages()
  /// The members that have ended the last call of each channel, by the channel's name.
  private var enders: [String: String] = [:]
  private let tiles = PageTiles()

  /// The number of warnings kept for pages that are opened later.
  private static let noticesKept = 8

  init(node: MusterNode) { self.node = node }

  /// Passes the frames of what the pages show to `server`; what they show is nil while no page is
  /// open.
  func showFrames(on server: ViewServer, of shown: AsyncStream<[ShownTile]?>) async {
    let tiles = tiles
    var isShowing = false
    for await shown in shown {
      if (shown != nil) != isShowing {
        isShowing = shown != nil
        // The server holds the node, which must not hold the server.
        let sink: @Sendable (ViewedFrame) -> Void = { [weak server] viewed in
          if let frame = tiles.frame(viewed) { server?.offer(frame) }
        }
        await node.showFrames(isShowing ? sink : nil)
      }
      await node.show(shown.map { $0.compactMap(video) })
    }
  }

  private func video(in shown: ShownTile) -> ShownVideo? {
    let size = VideoSize(width: max(shown.width, 1), height: max(shown.height, 1))
    let rates = VideoRequest.rates
    let rate = shown.fps.map { min(max($0, rates.lowerBound), rates.upperBound) }
    guard shown.tile != 0 else {
      return ShownVideo(source: .preview, size: size, framesPerSecond: rate)
    }
    guard let owner = tiles.owner(of: shown.tile) else { return nil }
    return ShownVideo(
      source: .member(owner.member, owner.stream, channel: owner.channel), size: size,
      framesPerSecond: rate, isPinned: shown.pin ?? false)
  }

  /// Lets the node request and pass nothing for pages any more.
  func end() async {
    await node.showFrames(nil)
    await node.show(nil)
  }

  func noticed(_ event: Event) {
    messages.noted(event)
    switch event {
    case .statistics(let statistics): self.statistics = statistics
    case .warning(let error), .error(let error, command: .none): notice("\(error)")
    case .callModerated(_, let moderation, let author) where author != node.id:
      notice(moderation.sentence(by: author, for: node.id, name: messages.name))
    case .callEnded(let channel, let call, CallEndReason.ended):
      noteEnd(of: call, in: channel)
    case .callStarted(let channel, _): enders[channel] = nil
    default: break
    }
  }

  private func noteEnd(of call: CallInfo, in channel: String) {
    let isOwn = call.initiator == node.id
    let name = isOwn ? "You" : messages.name(of: call.initiator)
    enders[channel] = name
    if !isOwn { notice("\(name) ended the call in \(channel) for all") }
  }

  private func notice(_ text: String) {
    notices = (notices + [text]).suffix(Self.noticesKept)
  }

  /// Carries out a command of the page; returns an error message, or nil on success.
  func perform(_ command: Command) async -> String? {
    do {
      let channel = await node.channelViews().first?.name
      try await node.perform(command.defaulting(to: channel), from: .page)
      return nil
    } catch {
      return "\(error)"
    }
  }

  // MARK: Snapshots

  /// A snapshot of all channels of the node; the first channel fills the fields of the snapshot
  /// itself.
  func snapshot() async -> ViewSnapshot {
    let channels = await node.channelViews()
    let sources = await node.sources()
    messages.keep(channels.map(\.name))
    enders = enders.filter { entry in channels.contains { $0.name == entry.key } }
    var rooms: [ViewSnapshot.Room] = []
    for channel in channels {
      await loadMessages(of: channel.name)
      rooms.append(room(channel, sources))
    }
    tiles.keep(
      channels.map { channel in
        (channel.name, channel.members.filter(\.isInCall).map(\.id))
      })
    let first = rooms.first
    return ViewSnapshot(
      own: first?.own ?? own(nil, sources), channel: first?.channel ?? "",
      channelID: first?.channelID ?? "", kind: first?.kind ?? .open,
      channels: channels.map(\.name), call: first?.call, endedBy: first?.endedBy,
      members: first?.members ?? [], messages: first?.messages ?? [], notices: notices,
      others: Array(rooms.dropFirst()))
  }

  private func room(
    _ channel: MusterNode.ChannelView, _ sources: OwnMedia
  ) -> ViewSnapshot.Room {
    ViewSnapshot.Room(
      channel: channel.name, channelID: channel.id.description, kind: channel.kind,
      own: own(channel, sources),
      call: channel.call.map { call in
        ViewSnapshot.Call(
          id: call.info.id.description, initiator: call.info.initiator.short,
          startedAt: Double(call.info.startedAt), participants: call.participants.map(\.short),
          speaker: channel.speaker?.short, removedBy: channel.removedBy.map(messages.name),
          successor: channel.successor.map(messages.name))
      }, endedBy: enders[channel.name], members: channel.members.map { member($0, channel) },
      messages: messages.messages(of: channel.name).map { message($0, channel) })
  }

  private func loadMessages(of channel: String) async {
    guard messages.begin(channel) else { return }
    let history = (try? await node.messages(in: channel)) ?? []
    messages.load(history, of: channel)
  }

  private func message(
    _ message: TextMessage, _ channel: MusterNode.ChannelView
  ) -> ViewSnapshot.Message {
    func name(_ id: NodeID) -> String {
      id == node.id ? channel.own.name : messages.name(of: id)
    }
    return ViewSnapshot.Message(
      id: String(message.id.hex.prefix(16)), from: message.from.short, name: name(message.from),
      to: message.to?.short, toName: message.to.map(name), text: message.text,
      sentAt: Double(message.sentAt))
  }

  private func own(
    _ channel: MusterNode.ChannelView?, _ sources: OwnMedia
  ) -> ViewSnapshot.Own {
    let flags = channel?.own.flags ?? []
    let role = channel?.own.role ?? Role.none
    let settings = channel?.settings ?? ChannelSettings()
    return ViewSnapshot.Own(
      id: node.id.short, name: channel?.own.name ?? "", role: role.name,
      mayStart: Capability.startCall.isAllowed(to: role, in: settings),
      maySend: Capability.sendAudio.isAllowed(to: role, in: settings),
      inCall: channel?.isInCall ?? false, callState: (channel?.callState ?? .disconnected).rawValue,
      audioMuted: flags.contains(.audioMuted), videoMuted: flags.contains(.videoMuted),
      speaking: flags.contains(.speaking), hasVideo: sources.contains(.video),
      hasAudio: sources.contains(.audio), hasShare: sources.contains(.share),
      mayShare: Capability.share.isAllowed(to: role, in: settings),
      sharing: flags.contains(.sharing), cpuStep: channel?.cpuStep ?? 0)
  }

  private func member(
    _ member: Member, _ channel: MusterNode.ChannelView
  ) -> ViewSnapshot.Member {
    let peer = statistics?.peers.first { $0.member == member.id && $0.channel == channel.name }
    let outranked = channel.outranked.filter { $0.link.peer == member.id }.map(\.stream)
    let received = peer?.received
    return ViewSnapshot.Member(
      id: member.id.short, name: member.name, role: member.role.name, inCall: member.isInCall,
      audioMuted: member.isSilent, videoMuted: member.isInvisible,
      speaking: member.flags.contains(.speaking), outranked: outranked.contains(.camera),
      mayModerate: channel.moderated.contains(member.id),
      tile: member.isInCall ? tiles.tile(of: .camera, of: member.id, in: channel.name) : nil,
      width: received?.layer?.size.width, height: received?.layer?.size.height,
      fps: (received?.layer?.framesPerSecond).map(Double.init),
      kbps: received?.kilobitsPerSecond, rttMs: peer?.roundTrip?.inMilliseconds,
      lossPercent: peer?.lossPercent, estimateKbps: peer?.estimatedKilobitsPerSecond,
      queueMs: peer?.queueingDelay?.inMilliseconds, layer: received?.layer?.description,
      why: received?.why, frozenMs: received?.totalFreezesDuration.inMilliseconds,
      audioLostPercent: received?.recentAudioLostPercent,
      via: peer?.via.map { messages.name(of: $0) },
      streams: member.isInCall ? streams(of: member, peer, outranked, channel) : [])
  }

  /// The video streams besides the camera that the member sends, and may send.
  private func streams(
    of member: Member, _ peer: Statistics.Peer?, _ outranked: [StreamID],
    _ channel: MusterNode.ChannelView
  ) -> [ViewSnapshot.Stream] {
    guard Capability.share.isAllowed(to: member.role, in: channel.settings) else { return [] }
    return member.streams.compactMap { offer in
      guard offer.id != .camera, !offer.isMuted, !offer.layers.isEmpty,
        let tile = tiles.tile(of: offer.id, of: member.id, in: channel.name)
      else { return nil }
      let received = peer?.streams.first { $0.name == offer.name }?.received
      return ViewSnapshot.Stream(
        stream: offer.name, tile: tile, outranked: outranked.contains(offer.id),
        width: received?.layer?.size.width,
        height: received?.layer?.size.height,
        fps: (received?.layer?.framesPerSecond).map(Double.init),
        kbps: received?.kilobitsPerSecond, layer: received?.layer?.description,
        why: received?.why, frozenMs: received?.totalFreezesDuration.inMilliseconds)
    }
  }
}
