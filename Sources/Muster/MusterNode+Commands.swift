import MusterBase
import MusterCore
import MusterLink
import MusterMesh
import MusterWire

extension MusterNode {
  /// Carries out a command; an error says why it cannot be done, and nothing was changed.
  public func perform(_ command: Command) throws(MusterError) {
    switch command.verb {
    case .startCall, .joinCall:
      let channel = try channel(of: command)
      guard command.verb == .startCall || node.call(in: channel) != nil else {
        throw MusterError("there is no call to join", hint: "start one with start-call")
      }
      perform(node.startCall(in: channel, at: now))
    case .leaveCall:
      let channel = try channel(of: command)
      guard node.isInCall(channel) else {
        throw MusterError("this node is not in the call", hint: "join it with join-call")
      }
      perform(node.leaveCall(in: channel, at: now))
    case .mute, .unmute: try setMuted(command)
    case .watch: try watch(command)
    case .keyframe:
      let channel = try channel(of: command)
      // The page's own preview is the smallest layer of this node itself.
      if command.member == id.short {
        media.video?.requestKeyframe(layer: 0)
        return
      }
      let member = try member(of: command, in: channel)
      perform(node.requestKeyframe(from: LinkID(channel: channel, peer: member), at: now))
    case .quit:
      throw MusterError("quit is the host's to carry out", hint: "", kind: .usage)
    }
    updateEncoders()
  }

  private func setMuted(_ command: Command) throws(MusterError) {
    let isMuted = command.verb == .mute
    switch command.media {
    case .audio: perform(node.setMuted(audio: isMuted, at: now))
    case .video: perform(node.setMuted(video: isMuted, at: now))
    case nil:
      throw MusterError(
        "\(command.verb.rawValue) of what", hint: "add \"media\": \"audio\" or \"video\"",
        kind: .usage)
    }
  }

  private func watch(_ command: Command) throws(MusterError) {
    let channel = try channel(of: command)
    let member = command.member == nil ? nil : try member(of: command, in: channel)
    let wish: VideoWish
    if command.off == true {
      wish = .none
    } else if let width = command.width, let height = command.height, width > 0, height > 0 {
      wish = VideoWish(width: UInt16(clamping: width), height: UInt16(clamping: height))
    } else {
      throw MusterError(
        "watch at which size", hint: "add \"width\" and \"height\", or \"off\": true", kind: .usage)
    }
    perform(node.watch(wish, of: member, in: channel, at: now))
  }

  private func channel(of command: Command) throws(MusterError) -> ChannelID {
    let channels = node.channelIDs
    if let name = command.channel {
      guard let channel = channels.first(where: { node.name(of: $0) == name }) else {
        throw MusterError(
          "this node is not in a channel \(name)", hint: "see \"channels\" in ready")
      }
      return channel
    }
    guard channels.count == 1 else {
      throw MusterError(
        "in which channel", hint: "add \"channel\": several are joined", kind: .usage)
    }
    return channels[0]
  }

  private func member(
    of command: Command, in channel: ChannelID
  ) throws(MusterError) -> NodeID {
    guard let text = command.member else {
      throw MusterError(
        "which member", hint: "add \"member\" with an id from member.joined", kind: .usage)
    }
    let known = node.members(of: channel).map(\.id)
    guard let id = known.first(where: { $0.short == text || $0.key.hex == text }) else {
      throw MusterError("no member \(text) is here", hint: "ids are in member.joined events")
    }
    return id
  }

  // MARK: Seeing

  /// A channel as it is now, for the terminal and the page.
  public struct ChannelView: Sendable {
    public var name: String
    public var own: Member
    public var members: [Member]
    public var call: ActiveCall?
    public var isInCall: Bool
  }

  public func channelViews() -> [ChannelView] {
    node.channelIDs.compactMap { channel in
      guard let own = node.ownMember(in: channel), let name = node.name(of: channel) else {
        return nil
      }
      return ChannelView(
        name: name, own: own, members: node.members(of: channel), call: node.call(in: channel),
        isInCall: node.isInCall(channel))
    }
  }

  /// The event that the host hears for one of the node's own, if any.
  func hostEvent(_ event: NodeEvent, in channel: ChannelID) -> Event? {
    guard let name = node.name(of: channel) else { return nil }
    switch event {
    case .channel(let event): return hostEvent(event, named: name)
    case .linkUp(let member, let address): return .linkUp(channel: name, member, address: address)
    case .linkDown(let member, let reason):
      return .linkDown(channel: name, member, reason: reason.rawValue)
    case .callState(let state):
      updateEncoders()
      return .callState(channel: name, state)
    case .firstFrame(let member, let after, let size):
      return .firstFrame(channel: name, member, after: after, size: size)
    case .layer(let member, let direction, let from, let to, let why):
      return .layer(channel: name, member, direction, from: from, to: to, why: why.rawValue)
    }
  }

  private func hostEvent(_ event: ChannelEvent, named name: String) -> Event {
    switch event {
    case .memberJoined(let member): .memberJoined(channel: name, member)
    case .memberUpdated(let member): .memberUpdated(channel: name, member)
    case .memberLeft(let member, let reason): .memberLeft(channel: name, member, reason)
    case .callStarted(let call): .callStarted(channel: name, call)
    case .callJoined(let call, let member): .callJoined(channel: name, call, member)
    case .callLeft(let call, let member, let reason): .callLeft(channel: name, call, member, reason)
    case .callEnded(let call, let reason): .callEnded(channel: name, call, reason: reason)
    }
  }
}
