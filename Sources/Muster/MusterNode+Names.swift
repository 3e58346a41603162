import MusterBase
import MusterChannel
import MusterCore
import MusterCrypto
import MusterWire

/// Methods for resolving the channel, member and stream names in commands.
extension MusterNode {
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
    let all = node.channelIDs
    let channel = all.first { $0.isNamed(by: name) } ?? all.first { node.name(of: $0) == name }
    guard let channel else {
      throw MusterError(
        "this node is not in a channel \(name)", hint: "see \"channels\" in ready")
    }
    return channel
  }

  /// The name by which each member was last known here, or its id.
  func shownNames(of members: [NodeID], in channel: ChannelID) -> [String] {
    let known = trust[channel]?.identities ?? []
    return members.map { member in known.last { $0.key == member }?.name ?? member.short }
  }

  func member(_ text: String, in channel: ChannelID) throws(MusterError) -> NodeID {
    let known = node.members(of: channel).map(\.id)
    guard let id = known.first(where: { $0.isNamed(by: text) }) else {
      throw MusterError("no member \(text) is here", hint: "ids are in member.joined events")
    }
    return id
  }

  /// The reachable member that a command is about, which may be this node itself.
  func participant(_ text: String, in channel: ChannelID) throws(MusterError) -> NodeID {
    id.isNamed(by: text) ? id : try member(text, in: channel)
  }

  /// The addressee of a message, by full key or by id. Only members that are reachable, or known by
  /// a role, a message or a stored name, can be found by id.
  func correspondent(
    _ text: String, in channel: ChannelID
  ) throws(MusterError) -> NodeID {
    if let bytes = Hex.decode(text), let key = Bytes32(bytes) { return NodeID(key) }
    let away =
      node.roles(in: channel).map(\.member) + node.history(of: channel).map(\.from)
      + correspondents(in: channel)
    if let id = away.first(where: { $0.isNamed(by: text) }) { return id }
    return try member(text, in: channel)
  }

  /// The stream with the given name. Names other than `camera` and `screen` are defined by each
  /// member.
  func stream(
    named name: String, of member: NodeID?, in channel: ChannelID
  ) throws(MusterError) -> StreamID {
    if let stream = StreamID.all.first(where: { $0.description == name }) { return stream }
    let announced = node.members(of: channel).first { $0.id == member }?.streams ?? []
    guard let stream = announced.first(where: { $0.name == name }) else {
      throw MusterError(
        "there is no stream \(DisplayText.sanitized(name, limit: 40))",
        hint: "camera and screen are; others need their \"member\"")
    }
    return stream.id
  }
}
