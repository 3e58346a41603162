import MusterBase
import MusterChannel
import MusterCore
import MusterLink
import MusterMedia
import MusterWire

/// The text of events in the timeline.
extension Simulation {
  func text(of event: NodeEvent) -> String {
    switch event {
    case .channel(let event): text(of: event)
    case .linkUp(let peer, _, let via):
      "link \(label(peer))" + (via.map { " via \(label($0))" } ?? "")
    case .linkDown(let peer, let reason): "link \(label(peer)) down: \(reason.rawValue)"
    case .callRefused(let refusal, _): "may not into a call: \(refusal)"
    case .rolesExpired(let members): "\(members.count) roles expired: a new key"
    case .keyChangeRefused(let refusal): "keeps the key: \(refusal)"
    case .mediaHeld(_, let role): "keeps its media off as \(role.name)"
    case .callState(let state): "call \(state.rawValue)"
    case .cpu(let step): "gives up for lack of CPU: \(step)"
    case .dominantSpeaker(let member): "\(member.map { label($0) } ?? "nobody") speaks"
    case .firstFrame(let peer, let stream, let after, let size):
      "sees the \(stream) of \(label(peer)) \(size) after "
        + "\(after.wholeNanoseconds / 1_000_000) ms"
    case .layer(let peer, let stream, let direction, let change):
      "layer \(direction.rawValue) \(stream) \(label(peer)): "
        + "\(change.from?.description ?? "none") to \(change.to?.description ?? "none"), "
        + change.why.name
    case .peerRefused(let peer, let reason): "refuses \(label(peer)): \(reason)"
    case .unreached(let peer, let addresses):
      "\(label(peer)) answers at none of \(addresses.count) addresses"
    case .twin(let address): "runs at \(address), too"
    case .pong(let peer, let roundTrip, _):
      "\(label(peer)) answers after \(roundTrip.wholeNanoseconds / 1_000_000) ms"
    }
  }

  private func text(of event: ChannelEvent) -> String {
    switch event {
    case .memberJoined(let member): "member \(label(member.id))"
    case .memberUpdated(let member):
      "member \(label(member.id)) \(member.role.name) flags \(member.flags.rawValue) "
        + "layers \(member.streams.map { $0.layers.count })"
    case .memberLeft(let member, let reason): "member \(label(member.id)) \(reason.rawValue)"
    case .callStarted(let call):
      "call \(short(call.info.id)) of \(label(call.info.initiator)): \(names(call.participants))"
    case .callJoined(let call, let who):
      "call \(short(call.info.id)): \(label(who)) joins: \(names(call.participants))"
    case .callLeft(let call, let who, let reason):
      "call \(short(call.info.id)): \(label(who)) \(reason.rawValue): \(names(call.participants))"
    case .callHandedOver(let call):
      "call \(short(call.info.id)) handed over to \(label(call.info.initiator)), term "
        + "\(call.info.term)"
    case .callEnded(let info, let reason): "call \(short(info.id)) over: \(reason)"
    case .moderated(let moderation, let author):
      "\(label(author)) moderates \(label(moderation.member)): \(moderation.actions.rawValue)"
    case .message(let message):
      "message \(messages.number(of: message.id) ?? -1) of \(label(message.from))"
    case .refused(let reason): "is refused: \(reason)"
    case .keyChanged(let epoch): "key \(epoch)"
    case .commitFailed(let subject): "could not write: \(subject.rawValue)"
    case .notKept(let subject): "not kept: \(subject.rawValue)"
    case .ownRoleEnds(let seconds, _): "has its role for \(seconds) s more"
    case .runsTwice(let member): "\(label(member)) runs twice"
    case .ownRoleChanged(let role): "is \(role.name)"
    }
  }

  private func short(_ id: CallID) -> String { String(id.description.prefix(6)) }

  private func names(_ ids: [NodeID]) -> String {
    ids.map { label($0) }.sorted().joined(separator: " ")
  }
}
