import MusterBase
import MusterChannel
import MusterCrypto
import MusterWire

/// What members of higher roles do to others in a call, in created channels.
extension Node {
  /// Mutes a member in the call for everyone: its node stops sending these media, until its user
  /// turns them on again.
  public mutating func mute(
    _ media: OwnMedia, of member: NodeID, in channel: ChannelID, at now: Instant
  ) throws(CommandRefusal) -> [Output] {
    try moderate(member, Moderation.Actions(muting: media), in: channel, at: now)
  }

  /// Removes a member from the call, to which it cannot come back.
  public mutating func removeFromCall(
    _ member: NodeID, in channel: ChannelID, at now: Instant
  ) throws(CommandRefusal) -> [Output] {
    try moderate(member, .remove, in: channel, at: now)
  }

  /// Whether this node may mute a member for everyone, or remove it from the call.
  public func mayModerate(_ member: NodeID, in channel: ChannelID) -> Bool {
    guard let state = channels[channel]?.state else { return false }
    return state.isSelfAllowed(.moderate) && state.rights.moderates(identity.id, member)
  }

  /// The member that has removed this node from the active call; nil if it may be in the call.
  public func remover(in channel: ChannelID) -> NodeID? {
    guard let state = channels[channel]?.state, let call = state.call else { return nil }
    return state.remover(of: id, from: call.info.id)
  }

  private mutating func moderate(
    _ member: NodeID, _ actions: Moderation.Actions, in channel: ChannelID, at now: Instant
  ) throws(CommandRefusal) -> [Output] {
    guard let entry = channels[channel] else { throw .unknownChannel }
    guard entry.genesis != nil else { throw .openChannel }
    try check(.moderate, in: channel)
    guard entry.state.call?.participants.contains(member) ?? false else { throw .notInCall }
    guard entry.state.rights.moderates(identity.id, member) else {
      throw .notLower(entry.state.role(of: member))
    }
    return change(channel, at: now) { $0.moderate(member, actions, at: now) }
  }

  /// Mutes what a member of a higher role has muted; this node's user may turn it on again.
  mutating func execute(
    _ moderation: Moderation, in channel: ChannelID, at now: Instant, _ out: inout [Output]
  ) {
    let media = moderation.actions.muted
    guard moderation.member == identity.id, !media.isEmpty, isInCall(channel) else { return }
    _ = channels.update(channel) { $0.muted.formUnion(media) }
    out += change(at: now) { _ in }
  }
}

extension Moderation.Actions {
  /// The muting of media.
  init(muting media: OwnMedia) {
    self = []
    if media.contains(.audio) { insert(.muteAudio) }
    if media.contains(.video) { insert(.muteVideo) }
    if media.contains(.share) { insert(.muteShare) }
  }

  /// The media that are muted.
  public var muted: OwnMedia {
    var media: OwnMedia = []
    if contains(.muteAudio) { media.insert(.audio) }
    if contains(.muteVideo) { media.insert(.video) }
    if contains(.muteShare) { media.insert(.share) }
    return media
  }
}
