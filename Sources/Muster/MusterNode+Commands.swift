import MusterBase
import MusterChannel
import MusterCore
import MusterCrypto
import MusterDiscovery
import MusterWire

extension MusterNode {
  /// Carries out a command; throws if `source` is not permitted to send this command.
  ///
  /// A command that throws has changed nothing. Effects are reported as events; only `administer`
  /// returns a non-empty reply.
  @discardableResult
  public func perform(
    _ command: Command, from source: Command.Source = .host
  ) async throws(MusterError) -> Administration.Reply {
    try command.check(from: source)
    switch command {
    case .joinChannel(let join): try await joinChannel(join)
    case .leaveChannel: try await leaveChannel(try channel(of: command))
    case .administer(let request): return try await administer(request)
    case .say:
      await waitForDisk(in: try channel(of: command))
      try apply(command)
    default: try apply(command)
    }
    return Administration.Reply()
  }

  /// Waits while the node would refuse a message because too many changes are being written, so
  /// that a script that sends faster than the disk writes is slowed down instead of refused. Gives
  /// up after 5 s; the message may then be refused.
  private func waitForDisk(in channel: ChannelID) async {
    let end = now + .seconds(5)
    while node.isWaitingForDisk(in: channel), now < end, !isStopping {
      await withCheckedContinuation { (written: CheckedContinuation<Void, Never>) in
        loop.schedule(at: now + .milliseconds(2)) { written.resume() }
      }
    }
  }

  /// Carries out a command that completes without waiting; `perform(_:from:)` handles all others.
  func apply(_ command: Command) throws(MusterError) {
    switch command {
    case .startCall: try startCall(in: try channel(of: command))
    case .joinCall:
      let channel = try channel(of: command)
      try execute { node throws(CommandRefusal) in try node.joinCall(in: channel, at: now) }
    case .leaveCall(let handOver, _):
      try leaveCall(in: try channel(of: command), handOver: handOver)
    case .mute(let media, let name): try setMuted(media, true, in: name)
    case .unmute(let media, let name): try setMuted(media, false, in: name)
    case .muteMember(let media, let text, _):
      let channel = try channel(of: command)
      let member = try participant(text, in: channel)
      try execute { node throws(CommandRefusal) in
        try node.mute(media.own, of: member, in: channel, at: now)
      }
    case .removeFromCall(let text, _):
      let channel = try channel(of: command)
      let member = try participant(text, in: channel)
      try execute { node throws(CommandRefusal) in
        try node.removeFromCall(member, in: channel, at: now)
      }
    case .watch(let watch): try self.watch(watch, in: try channel(of: command))
    case .keyframe(let member, let stream, _):
      try requestKeyframe(of: stream ?? "camera", from: member, in: try channel(of: command))
    case .say(let text, let to, _): try say(text, to: to, in: try channel(of: command))
    case .quit:
      throw MusterError("quit is the host's to carry out", hint: "stop the node", kind: .usage)
    case .joinChannel, .leaveChannel, .administer:
      preconditionFailure("perform(_:from:) carries these out")
    }
    updateEncoders()
    reportOwnChanges()
  }

  /// Calls a method of the node and executes its outputs; throws the error of a refusal.
  func execute(
    _ body: (inout Node) throws(CommandRefusal) -> [Node.Output]
  ) throws(MusterError) {
    let outputs: [Node.Output]
    do { outputs = try body(&node) } catch { throw MusterError(error) }
    perform(outputs)
  }

  // MARK: Calls

  private func startCall(in channel: ChannelID) throws(MusterError) {
    try execute { node throws(CommandRefusal) in try node.startCall(in: channel, at: now) }
  }

  private func leaveCall(in channel: ChannelID, handOver: Bool) throws(MusterError) {
    guard node.isInOrEnteringCall(channel) else {
      throw MusterError("this node is not in the call", hint: "join it with join-call")
    }
    try execute { node throws(CommandRefusal) in
      handOver
        ? try node.handOverCall(in: channel, at: now) : node.leaveCall(in: channel, at: now)
    }
  }

  // MARK: Media

  private func setMuted(
    _ media: Command.Media, _ isMuted: Bool, in name: String?
  ) throws(MusterError) {
    // A nil name stands for all channels; each channel has a separate mute state.
    var channel: ChannelID?
    if let name { channel = try self.channel(named: name) }
    perform(node.setMuted(media, isMuted, in: channel, at: now))
  }

  private func watch(_ watch: Command.Watch, in channel: ChannelID) throws(MusterError) {
    var watched: NodeID?
    if let text = watch.member { watched = try member(text, in: channel) }
    let requested = watch.size.map {
      VideoRequest($0, framesPerSecond: watch.framesPerSecond)
    }
    var stream: StreamID?
    if let name = watch.stream { stream = try self.stream(named: name, of: watched, in: channel) }
    perform(
      node.watch(
        requested ?? .none, stream: stream, of: watched, isPinned: watch.isPinned, in: channel,
        at: now))
  }

  private func requestKeyframe(
    of stream: String, from text: String, in channel: ChannelID
  ) throws(MusterError) {
    // The page previews the smallest layer of this node's own camera.
    if text == id.short {
      media[.camera]?.stream.requestKeyframe(layer: 0)
      return
    }
    let member = try member(text, in: channel)
    let stream = try self.stream(named: stream, of: member, in: channel)
    let link = LinkID(channel: channel, peer: member)
    perform(node.requestKeyframe(of: stream, from: link, at: now))
  }

  // MARK: Text

  private func say(_ text: String, to name: String?, in channel: ChannelID) throws(MusterError) {
    var receiver: NodeID?
    if let name { receiver = try correspondent(name, in: channel) }
    try execute { node throws(CommandRefusal) in
      try node.say(text, to: receiver, in: channel, at: now)
    }
  }
}
