import MusterBase
import MusterChannel
import MusterCore
import MusterCrypto
import MusterDiscovery
import MusterWire

extension MusterNode {
  /// Carries out a command; an error says why it cannot be done, and nothing was changed.
  public func perform(_ command: Command) async throws(MusterError) {
    switch command.verb {
    case .startCall, .joinCall:
      let channel = try channel(of: command)
      guard command.verb == .startCall || node.call(in: channel) != nil else {
        throw MusterError("there is no call to join", hint: "start one with start-call")
      }
      try attempt { node throws(CommandRefusal) in try node.startCall(in: channel, at: now) }
    case .leaveCall:
      let channel = try channel(of: command)
      guard node.isInCall(channel) else {
        throw MusterError("this node is not in the call", hint: "join it with join-call")
      }
      perform(node.leaveCall(in: channel, at: now))
    case .mute, .unmute: try setMuted(command)
    case .watch: try watch(command)
    case .keyframe: try requestKeyframe(command)
    case .say: try say(command)
    case .joinChannel: try await joinChannel(command)
    case .leaveChannel: try await leaveChannel(try channel(of: command))
    case .quit:
      throw MusterError("quit is the host's to carry out", hint: "", kind: .usage)
    }
    updateEncoders()
  }

  /// Has the node do what it may refuse to.
  func attempt(
    _ body: (inout Node) throws(CommandRefusal) -> [Node.Output]
  ) throws(MusterError) {
    let outputs: [Node.Output]
    do { outputs = try body(&node) } catch { throw MusterError(error) }
    perform(outputs)
  }

  // MARK: Media

  private func setMuted(_ command: Command) throws(MusterError) {
    let isMuted = command.verb == .mute
    // Without a channel: everywhere. A node in several channels publishes to those it chooses.
    let channel = command.channel == nil ? nil : try channel(of: command)
    switch command.media {
    case .audio: perform(node.setMuted(audio: isMuted, in: channel, at: now))
    case .video: perform(node.setMuted(video: isMuted, in: channel, at: now))
    case nil:
      throw MusterError(
        "\(command.verb.rawValue) of what", hint: "add \"media\": \"audio\" or \"video\"",
        kind: .usage)
    }
  }

  private func watch(_ command: Command) throws(MusterError) {
    let channel = try channel(of: command)
    var watched: NodeID?
    if let text = command.member { watched = try member(text, in: channel) }
    let requested: RequestedResolution
    if command.off == true {
      requested = .none
    } else if let width = command.width, let height = command.height, width > 0, height > 0 {
      requested = RequestedResolution(
        width: UInt16(clamping: width), height: UInt16(clamping: height))
    } else {
      throw MusterError(
        "watch at which size", hint: "add \"width\" and \"height\", or \"off\": true", kind: .usage)
    }
    let stream = try stream(of: command, of: watched, in: channel)
    perform(node.watch(requested, stream: stream, of: watched, in: channel, at: now))
  }

  /// The stream that a command names, if it names one. Names of streams other than the camera and
  /// the screen are each member's own.
  private func stream(
    of command: Command, of member: NodeID?, in channel: ChannelID
  ) throws(MusterError) -> StreamID? {
    guard let name = command.stream else { return nil }
    if let stream = [StreamID.camera, .screen].first(where: { $0.description == name }) {
      return stream
    }
    let announced = node.members(of: channel).first { $0.id == member }?.streams ?? []
    guard let stream = announced.first(where: { $0.name == name }) else {
      throw MusterError(
        "there is no stream \(name)", hint: "camera and screen are; others need their \"member\"")
    }
    return stream.id
  }

  private func requestKeyframe(_ command: Command) throws(MusterError) {
    let channel = try channel(of: command)
    // The page's own preview is the smallest layer of this node's camera.
    if command.member == id.short {
      media.video(.camera)?.requestKeyframe(layer: 0)
      return
    }
    guard let text = command.member else {
      throw MusterError(
        "which member", hint: "add \"member\" with an id from member.joined", kind: .usage)
    }
    let member = try member(text, in: channel)
    let stream = try stream(of: command, of: member, in: channel) ?? .camera
    let link = LinkID(channel: channel, peer: member)
    perform(node.requestKeyframe(of: stream, from: link, at: now))
  }

  // MARK: Text

  private func say(_ command: Command) throws(MusterError) {
    let channel = try channel(of: command)
    guard let text = command.text else {
      throw MusterError("say what", hint: "add \"text\"", kind: .usage)
    }
    var receiver: NodeID?
    if let name = command.to { receiver = try correspondent(name, in: channel) }
    try say(text, to: receiver, in: channel)
  }

  func say(_ text: String, to receiver: NodeID?, in channel: ChannelID) throws(MusterError) {
    try attempt { node throws(CommandRefusal) in
      try node.say(text, to: receiver, in: channel, at: now)
    }
  }

  // MARK: Who is meant

  func channel(of command: Command) throws(MusterError) -> ChannelID {
    let channels = node.channelIDs
    if let name = command.channel { return try channel(named: name) }
    guard channels.count == 1 else {
      throw channels.isEmpty
        ? MusterError("this node is in no channel", hint: "join one with join-channel")
        : MusterError(
          "in which channel", hint: "add \"channel\": several are joined", kind: .usage)
    }
    return channels[0]
  }

  func channel(named name: String) throws(MusterError) -> ChannelID {
    guard let channel = node.channelIDs.first(where: { node.name(of: $0) == name }) else {
      throw MusterError(
        "this node is not in a channel \(name)", hint: "see \"channels\" in ready")
    }
    return channel
  }

  private func member(_ text: String, in channel: ChannelID) throws(MusterError) -> NodeID {
    let known = node.members(of: channel).map(\.id)
    guard let id = known.first(where: { $0.short == text || $0.key.hex == text }) else {
      throw MusterError("no member \(text) is here", hint: "ids are in member.joined events")
    }
    return id
  }

  /// A member that is here, or one that is away and of whom a role or a message is known.
  private func correspondent(
    _ text: String, in channel: ChannelID
  ) throws(MusterError) -> NodeID {
    if let bytes = Hex.decode(text), let key = Bytes32(bytes) { return NodeID(key) }
    let away =
      node.roles(in: channel).map(\.member) + node.history(of: channel).map(\.from)
      + correspondents(in: channel)
    if let id = away.first(where: { $0.short == text }) { return id }
    return try member(text, in: channel)
  }
}

extension MusterError {
  /// What a node refuses, in words.
  init(_ refusal: CommandRefusal) {
    switch refusal {
    case .unknownChannel:
      self.init("this node is not in that channel", hint: "join it first")
    case .unknownMember: self.init("that is no member's key", hint: "ids are in member.joined")
    case .openChannel:
      self.init(
        "this is an open channel: whoever knows its secret is a member, and nobody can be removed",
        hint: "roles and removal need a channel made with muster channel create")
    case .notAllowed(let capability, let role):
      self.init(
        "the role \(role.name) does not allow to \(capability.words)",
        hint: "ask the channel's owner for another role")
    case .notMember(let reason):
      let error = MusterError(reason, channel: "the channel")
      self.init(error.message, hint: error.hint)
    case .ownerStays:
      self.init("the owner's own role stays", hint: "name another member", kind: .usage)
    case .tooLong:
      self.init(
        "the text is too long", hint: "\(Limits.textBytes) bytes are the most", kind: .usage)
    case .empty: self.init("the text is empty", hint: "write something", kind: .usage)
    case .tooManyEpochs:
      self.init(
        "the channel's key was changed \(Limits.epochs) times", hint: "create a new channel")
    case .busy:
      self.init("earlier changes are still being written", hint: "try again; check the disk")
    }
  }

  /// What could not be written, and so did not happen.
  init(_ subject: CommitSubject) {
    let what =
      switch subject {
      case .message: "the message was not sent"
      case .role: "the role was not changed"
      case .key: "the member was not removed"
      case .invite: "the invite is not valid"
      case .callEnd: "the call goes on without this node"
      }
    self.init("\(what): it could not be written", hint: "check the disk and its free space")
  }

  /// Why others do not take this node for a member.
  init(_ reason: Refusal, channel: String) {
    switch reason {
    case .removed:
      self.init(
        "this node was removed from \(channel)", hint: "ask its owner for a new invite")
    case .inviteOutdated:
      self.init(
        "the invite to \(channel) is from before its key was changed",
        hint: "ask its owner for a new one")
    case .expired:
      self.init(
        "the invite to \(channel), or the role it gave, has expired",
        hint: "ask its owner for a new one")
    case .noGrant:
      self.init(
        "\(channel) knows no invite and no role of this node",
        hint: "ask its owner for an invite")
    case .equivocated:
      self.init(
        "this node's key was used twice at the same time, and \(channel) trusts it no more",
        hint: "use a fresh --data directory and ask for an invite")
    case .unknown:
      self.init("\(channel) does not take this node for a member", hint: "ask its owner why")
    }
  }
}

extension Capability {
  fileprivate var words: String {
    switch self {
    case .receive: "listen"
    case .joinCall: "join the call"
    case .sendAudio: "send sound"
    case .sendVideo: "send pictures"
    case .sendText: "write messages"
    case .startCall: "start a call"
    case .share: "share the screen"
    case .handOver: "take over a call"
    case .grant: "give roles"
    }
  }
}
