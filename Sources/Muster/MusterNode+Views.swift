import MusterBase
import MusterChannel
import MusterCore
import MusterMedia
import MusterWire

/// The state of the node for display by its host.
extension MusterNode {
  /// A snapshot of a channel's state, for the terminal and the call page.
  public struct ChannelView: Sendable {
    /// The channel's id.
    public var id: ChannelID
    /// The channel's name.
    public var name: String
    /// This node as a member, as the other members see it.
    public var own: Member
    /// The reachable members without this node, in the order of their ids.
    public var members: [Member]
    /// The active call, whether or not this node is a participant; nil if there is none.
    public var call: ActiveCall?
    /// Whether this node is in the call.
    public var isInCall: Bool
    /// The state of this node's connection to the call.
    public var callState: CallState
    /// The dominant speaker of the call that this node is in; nil if nobody has spoken.
    public var speaker: NodeID?
    /// What this node gives up in calls for lack of CPU: 0 for nothing, to 8 (`Event.callCPU`).
    public var cpuStep: Int
    /// The videos that rest, since others rank higher for this node (`Configuration.maxStreams`),
    /// or since it is short of CPU.
    public var outranked: [MemberStream]
    /// The member that removed this node from the active call; nil if it may join.
    public var removedBy: NodeID?
    /// The member that would lead the call if this node, its initiator, handed it over; nil if none
    /// may, or if this node does not lead it.
    public var successor: NodeID?
    /// The members that this node may mute for everyone or remove from the call.
    public var moderated: [NodeID]
    /// Whether the channel has an owner and roles.
    public var isCreated: Bool { kind == .created }
    /// `created` for a channel with an owner and roles, otherwise `open`.
    public var kind: Administration.ChannelSummary.Kind
    /// The channel's policies, fixed when it was created; the defaults in an open channel.
    public var settings: ChannelSettings
  }

  /// The channels that this node is in, in the order of their ids.
  public func channelViews() -> [ChannelView] {
    node.channelIDs.compactMap { channel in
      guard let own = node.ownMember(in: channel), let name = node.name(of: channel) else {
        return nil
      }
      let members = node.members(of: channel)
      return ChannelView(
        id: channel, name: name, own: own, members: members, call: node.call(in: channel),
        isInCall: node.isInCall(channel), callState: node.callState(in: channel),
        speaker: node.dominantSpeaker(in: channel), cpuStep: node.adaptation.rawValue,
        outranked: node.outrankedStreams(in: channel), removedBy: node.remover(in: channel),
        successor: node.successor(in: channel),
        moderated: members.map(\.id).filter { node.mayModerate($0, in: channel) },
        kind: node.genesis(of: channel) == nil ? .open : .created,
        settings: node.genesis(of: channel)?.genesis.settings ?? ChannelSettings())
    }
  }

  /// Converts an event of the `Node` value into a public event. An event that the host does not
  /// receive, such as a pong, is processed here, and the result is nil.
  func hostEvent(_ event: NodeEvent, in channel: ChannelID) -> Event? {
    guard let name = name(of: channel) else { return nil }
    switch event {
    case .channel(.runsTwice(let member)):
      guard member != id else { return warningOfTwin(at: nil) }
      let shown = shownNames(of: [member], in: channel).joined()
      return .warning(MusterError(runsTwice: shown, channel: name))
    case .channel(.refused(.expired)) where node.hasRoleEnded(in: channel):
      return .error(MusterError(roleEndedIn: name), command: nil)
    case .channel(let event): return hostEvent(event, named: name)
    case .linkUp(let member, let address, let via):
      return .linkUp(channel: name, member, address: address, via: via)
    case .linkDown(let member, let reason):
      return .linkDown(channel: name, member, reason: reason.rawValue)
    case .callState(let state):
      updateEncoders()
      return .callState(channel: name, state)
    case .cpu(let step): return .callCPU(channel: name, step: step.rawValue)
    case .dominantSpeaker(let member): return .callSpeaker(channel: name, member)
    case .callRefused(let refusal, let joinsNext): return refused(refusal, joinsNext: joinsNext)
    case .rolesExpired(let members):
      return .warning(MusterError(expired: shownNames(of: members, in: channel), name))
    case .mediaHeld(let media, let role):
      return .warning(MusterError(held: media, role, channel: name))
    case .keyChangeRefused(let refusal):
      let error = MusterError(refusal)
      return .warning(
        MusterError(
          "\(name) keeps its key although roles have expired: \(error.message)", hint: error.hint))
    case .peerRefused(let peer, let reason):
      decided("member refused", name, peer, ["reason": "\(reason)"])
      return nil
    case .unreached(let peer, let addresses):
      let near = addresses.first { address in interfaces.contains { $0.reaches(address) } }
      return .warning(
        MusterError(unreached: peer, tried: addresses, near: near, channel: name))
    case .twin(let address): return warningOfTwin(at: address)
    case .pong(let member, let roundTrip, let route):
      noticePong(of: member, Pong(channel: channel, roundTrip: roundTrip, route: route))
      return nil
    case .firstFrame(let member, let stream, let after, let size):
      let called = self.name(of: stream, of: member, in: channel)
      return .firstFrame(channel: name, member, stream: called, after: after, size: size)
    case .layer(let member, let stream, let direction, let change):
      let owner = direction == .sent ? id : member
      return .layer(
        channel: name, member, stream: self.name(of: stream, of: owner, in: channel), direction,
        from: change.from, to: change.to, why: change.why.name)
    }
  }

  private func hostEvent(_ event: ChannelEvent, named name: String) -> Event? {
    switch event {
    case .memberJoined(let member): .memberJoined(channel: name, member)
    case .memberUpdated(let member): .memberUpdated(channel: name, member)
    case .memberLeft(let member, let reason): .memberLeft(channel: name, member, reason)
    case .callStarted(let call): .callStarted(channel: name, call)
    case .callJoined(let call, let member): .callJoined(channel: name, call, member)
    case .callLeft(let call, let member, let reason): .callLeft(channel: name, call, member, reason)
    case .callEnded(let call, let reason): .callEnded(channel: name, call, reason: reason)
    case .callHandedOver(let call): .callHandedOver(channel: name, call)
    case .moderated(let moderation, let author):
      .callModerated(channel: name, moderation, by: author)
    case .message(let message): .message(channel: name, message)
    case .commitFailed(let subject): .warning(MusterError(unwritten: subject))
    case .notKept(let subject): .warning(MusterError(notKept: subject))
    case .refused(let reason): .error(MusterError(reason, channel: name), command: nil)
    case .ownRoleEnds(let seconds, let isProvisional):
      .warning(MusterError(roleEnds: seconds, isProvisional: isProvisional, channel: name))
    case .keyChanged, .ownRoleChanged, .runsTwice: nil
    }
  }
}
