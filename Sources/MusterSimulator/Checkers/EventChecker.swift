import MusterBase
import MusterChannel
import MusterCore
import MusterWire

/// Checks that events are complete and consistent: members join before they change or leave, a call
/// starts before it ends, links come up before they go down, and all events together yield the
/// node's state.
public struct EventChecker: Sendable {
  private var members = PeerTable<NodeID, Member>()
  private var call: ActiveCall?
  private var links: [NodeID] = []
  private var state = CallState.disconnected
  private var speaker: NodeID?
  private var epoch: UInt32 = 0

  /// The state of a node before its first event: no members, no call, no links.
  public init() {}

  /// Records that the node has entered the channel again; links stay, because they belong to the
  /// process.
  public mutating func entered() {
    (members, call, speaker, epoch) = (PeerTable(), nil, nil, 0)
    state = .disconnected
  }

  /// Records that the node has left the channel, which also ends its links.
  public mutating func left() {
    entered()
    links = []
  }

  /// The fault in the next event of the node; nil for none.
  public mutating func saw(_ event: NodeEvent) -> String? {
    switch event {
    case .channel(let event): return saw(event)
    case .linkUp(let peer, _, _):
      if links.contains(peer) { return "a link comes up twice" }
      links.append(peer)
    case .linkDown(let peer, _):
      guard let index = links.firstIndex(of: peer) else { return "a link goes down twice" }
      links.remove(at: index)
    case .callState(let new):
      if new == state { return "is \(new.rawValue) twice" }
      state = new
    case .dominantSpeaker(let new):
      if new == speaker { return "the same member becomes the speaker twice" }
      speaker = new
    case .cpu: return "is short of CPU, where that costs no time"
    case .callRefused, .rolesExpired, .keyChangeRefused, .mediaHeld, .firstFrame, .layer,
      .peerRefused, .unreached, .twin, .pong:
      break
    }
    return nil
  }

  /// The fault in the next channel event of the node; nil for none.
  public mutating func saw(_ event: ChannelEvent) -> String? {
    switch event {
    case .memberJoined(let member):
      if members[member.id] != nil { return "\(member.name) joins twice" }
      members[member.id] = member
    case .memberUpdated(let member):
      guard let known = members[member.id] else { return "\(member.name) changes unjoined" }
      if known == member { return "\(member.name) changes nothing" }
      members[member.id] = member
    case .memberLeft(let member, _):
      if members[member.id] == nil { return "\(member.name) leaves twice" }
      members[member.id] = nil
    case .ownRoleChanged, .ownRoleEnds, .commitFailed, .notKept: break
    case .runsTwice(let member): return "\(member.short) runs twice"
    case .keyChanged(let number):
      if number <= epoch { return "key \(number) comes after key \(epoch)" }
      epoch = number
    case .moderated(let moderation, _):
      if moderation.call != call?.info.id { return "a moderation of a call that is not on" }
    case .message, .refused: break
    case .callStarted, .callJoined, .callLeft, .callHandedOver, .callEnded:
      return sawCall(event)
    }
    return nil
  }

  private mutating func sawCall(_ event: ChannelEvent) -> String? {
    switch event {
    case .callStarted(let new):
      if call != nil { return "a call starts within a call" }
      call = new
    case .callJoined(let new, let who):
      guard let known = call, known.info.id == new.info.id else { return "a join without its call" }
      if known.participants.contains(who) { return "joins the call twice" }
      if (known.participants + [who]).sorted() != new.participants { return "others join unsaid" }
      call = new
    case .callLeft(let new, let who, _):
      guard let known = call, known.info.id == new.info.id else {
        return "a leave without its call"
      }
      if known.participants.filter({ $0 != who }) != new.participants {
        return "others leave unsaid"
      }
      if new.participants.count == known.participants.count { return "leaves the call twice" }
      call = new
    case .callHandedOver(let new):
      guard let known = call, known.info.id == new.info.id else { return "a hand-over of no call" }
      if new.info.initiator == known.info.initiator { return "a call handed over to its initiator" }
      call = new
    case .callEnded(let info, _):
      guard call?.info.id == info.id else { return "a call ends twice" }
      call = nil
    default: break
    }
    return nil
  }

  /// The first difference between the node's state and the state that its events yield; nil for
  /// none.
  public func difference(members now: [Member], call nowCall: ActiveCall?) -> String? {
    if members.map(\.value) != now { return "events do not add up to the \(now.count) members" }
    guard call?.info.id == nowCall?.info.id else { return "events do not add up to the call" }
    guard call?.participants == nowCall?.participants else {
      return "events do not add up to the call's participants"
    }
    return call?.info.initiator == nowCall?.info.initiator
      ? nil : "events do not add up to the call's initiator"
  }
}
