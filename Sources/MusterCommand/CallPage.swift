import Glibc
import Muster
import MusterBase
import MusterChannel
import MusterCrypto
import MusterDiscovery
import MusterView
import MusterWire
import NIOPosix
import Synchronization

/// The call page of one node: the server, and what goes between it and the node.
final class CallPage: Sendable {
  let url: String
  private let server: ViewServer
  private let source: PageSource

  private init(url: String, server: ViewServer, source: PageSource) {
    self.url = url
    self.server = server
    self.source = source
  }

  static func start(_ node: MusterNode, port: Int, open: Bool) async throws(MusterError) -> CallPage
  {
    var entropy = Entropy.system
    let token = Hex.encode(entropy.bytes(16))
    let source = PageSource(node: node)
    let host = ViewHost(
      snapshot: { await source.snapshot() }, perform: { await source.perform($0) })
    let server = ViewServer(host: host, port: port, token: token)
    do {
      let url = try await server.start(group: MultiThreadedEventLoopGroup.singleton)
      await source.connect(server)
      if open { Browser.open(url) }
      return CallPage(url: url, server: server, source: source)
    } catch {
      throw MusterError(error.message, hint: error.hint)
    }
  }

  /// Something changed that the page may show.
  func noticed(_ event: Event) {
    Task { await source.noticed(event) }
  }

  func stop() async {
    await source.disconnect()
    await server.stop()
  }
}

/// Makes snapshots and frames for the page out of what the node tells.
private actor PageSource {
  private let node: MusterNode
  private var server: ViewServer?
  private var statistics: Statistics?
  private var notices: [String] = []
  private var messages = PageMessages()
  private let tiles = Tiles()
  private var poll: Task<Void, Never>?

  /// Warnings that the page is told of.
  private static let noticesKept = 8

  init(node: MusterNode) { self.node = node }

  func connect(_ server: ViewServer) {
    self.server = server
    poll = Task { await followPages(of: server) }
  }

  /// Hands pictures over while a page is open, and none while none is.
  private func followPages(of server: ViewServer) async {
    let tiles = tiles
    var isShowing = false
    while !Task.isCancelled {
      if server.wantsFrames != isShowing {
        isShowing.toggle()
        if isShowing {
          await node.showFrames { viewed in server.offer(tiles.frame(viewed)) }
        } else {
          await node.showFrames(nil)
        }
      }
      try? await Task.sleep(for: .milliseconds(100))
    }
  }

  func disconnect() async {
    poll?.cancel()
    await node.showFrames(nil)
  }

  func noticed(_ event: Event) {
    messages.noted(event)
    switch event {
    case .statistics(let statistics): self.statistics = statistics
    case .warning(let error), .error(let error, command: .none):
      notices = (notices + ["\(error)"]).suffix(Self.noticesKept)
    default: break
    }
    server?.changed()
  }

  func perform(_ json: [UInt8]) async -> String? {
    do {
      var command = try Command(json: json)
      switch command.verb {
      case .quit: return "a page cannot end the node"
      case .joinChannel, .leaveChannel: return "a page shows the channel that the node is in"
      default: break
      }
      if command.channel == nil { command.channel = await node.channelViews().first?.name }
      try await node.perform(command)
      return nil
    } catch {
      return "\(error)"
    }
  }

  func snapshot() async -> ViewSnapshot {
    let channels = await node.channelViews()
    let sources = await node.sources()
    guard let channel = channels.first else {
      return ViewSnapshot(
        own: own(nil, sources), channel: "", channels: [], call: nil, members: [], notices: notices)
    }
    await loadMessages(of: channel.name, among: channels.map(\.name))
    return ViewSnapshot(
      own: own(channel, sources), channel: channel.name, channels: channels.map(\.name),
      call: channel.call.map { call in
        ViewSnapshot.Call(
          id: call.info.id.description, initiator: call.info.initiator.short,
          startedAt: Double(call.info.startedAt), participants: call.participants.map(\.short))
      }, members: channel.members.map { member($0, channel.name) },
      messages: messages.messages(of: channel.name).map { message($0, channel) },
      notices: notices)
  }

  private func loadMessages(of channel: String, among channels: [String]) async {
    messages.keep(channels)
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
    _ channel: MusterNode.ChannelView?, _ sources: (video: Bool, audio: Bool)
  ) -> ViewSnapshot.Own {
    let flags = channel?.own.flags ?? []
    let role = channel?.own.role ?? Role.none
    return ViewSnapshot.Own(
      id: node.id.short, name: channel?.own.name ?? "", role: role.name,
      mayStart: Capability.startCall.isAllowed(
        to: role, in: channel?.settings ?? ChannelSettings()),
      maySend: Capability.sendAudio.isAllowed(to: role, in: channel?.settings ?? ChannelSettings()),
      inCall: channel?.isInCall ?? false,
      audioMuted: flags.contains(.audioMuted), videoMuted: flags.contains(.videoMuted),
      speaking: flags.contains(.speaking), hasVideo: sources.video, hasAudio: sources.audio)
  }

  private func member(_ member: Member, _ channel: String) -> ViewSnapshot.Member {
    let peer = statistics?.peers.first { $0.member == member.id && $0.channel == channel }
    let received = peer?.received
    return ViewSnapshot.Member(
      id: member.id.short, name: member.name, role: member.role.name, inCall: member.isInCall,
      audioMuted: member.flags.contains(.audioMuted),
      videoMuted: member.flags.contains(.videoMuted) || !member.hasCamera,
      speaking: member.flags.contains(.speaking),
      tile: member.isInCall ? tiles.tile(of: member.id) : nil,
      width: received?.layer?.size.width, height: received?.layer?.size.height,
      fps: (received?.layer?.framesPerSecond).map(Double.init),
      kbps: received?.kilobitsPerSecond, rttMs: peer?.roundTrip?.inMilliseconds,
      lossPercent: peer?.lossPercent, layer: received?.layer?.description, why: received?.why,
      via: peer?.via.map { messages.name(of: $0) })
  }
}

/// Numbers the tiles of the page: 0 is this node's own preview.
private final class Tiles: Sendable {
  private struct State {
    var members: [NodeID] = []
    var sequences = [UInt32](repeating: 0, count: 256)
    var lastTimestamp = [Double](repeating: 0, count: 256)
  }

  private let state = Mutex(State())

  func tile(of member: NodeID) -> UInt8? {
    state.withLock { Self.tile(of: member, &$0) }
  }

  private static func tile(of member: NodeID, _ state: inout State) -> UInt8? {
    if let index = state.members.firstIndex(of: member) { return UInt8(index + 1) }
    guard state.members.count < 255 else { return nil }
    state.members.append(member)
    return UInt8(state.members.count)
  }

  func frame(_ viewed: ViewedFrame) -> ViewFrame {
    state.withLock { state in
      let tile = viewed.member.map { Self.tile(of: $0, &state) ?? 0 } ?? 0
      let index = Int(tile)
      state.sequences[index] &+= 1
      // Unique within the tile, as the page keys its pictures by it.
      let microseconds = Double(viewed.at.nanoseconds / 1000)
      state.lastTimestamp[index] = max(state.lastTimestamp[index] + 1, microseconds)
      return ViewFrame(
        tile: tile, isKeyframe: viewed.isKeyframe,
        temporalLayer: UInt8(clamping: viewed.temporalLayer), sequence: state.sequences[index],
        sentAtMilliseconds: Clocks.wallMilliseconds,
        timestampMicroseconds: state.lastTimestamp[index], data: viewed.data)
    }
  }
}
