import MusterBase
import MusterCrypto
import MusterWire

/// The roster and the call of one channel, worked out from the newest signed hello of every member.
///
/// Hellos come over links from their authors themselves. They are signed all the same, so that they
/// may one day be passed on by others: gossip then replaces the way in, `receiveHello`, and the way
/// out, `publish`, and nothing else.
public struct ChannelState: Sendable {
  public enum Output: Equatable, Sendable {
    case send(Control, to: NodeID)
    case event(ChannelEvent)
  }

  /// What is known of a linked peer.
  struct Peer: Sendable {
    var delivery: HelloDelivery
    /// Nil until it has said hello, and after its last word.
    var member: Member?
    var bootID: UInt64?
    var sequence: UInt64 = 0
    /// Processes that it has replaced, `formerBoots` at most: what still comes of them is late.
    var formerBoots: [UInt64] = []
    /// Twice what speaking, muting and resending can bring about.
    var budget = TokenBucket(capacity: 40, perSecond: 20)
  }

  static let formerBoots = 4

  public let channel: ChannelID
  public internal(set) var call: ActiveCall?
  public internal(set) var counters = ChannelCounters()

  let identity: Identity
  var own: Hello
  var peers = PeerTable<NodeID, Peer>()
  var ended = EndedCalls()
  /// The signed form of `own`; nil when it has changed since.
  private var signed: [UInt8]?

  public init(identity: Identity, channel: ChannelID, name: String, bootID: UInt64) {
    self.identity = identity
    self.channel = channel
    own = Hello(
      author: identity.id, bootID: bootID, sequence: 0,
      name: Member.shownName(name, of: identity.id), flags: [], call: nil, endedCall: nil,
      layers: [])
  }

  /// The members that this node has heard of, without itself, in the order of their ids.
  public var members: [Member] { peers.compactMap(\.value.member) }

  public var ownMember: Member { Member(own) }

  public var isInCall: Bool { own.call != nil }

  /// Whether this node has said its last word here.
  public var hasLeft: Bool { own.flags.contains(.left) }

  /// Whether every linked peer has acknowledged this node's newest hello.
  public var isSettled: Bool { peers.allSatisfy(\.value.delivery.isAcknowledged) }

  /// Sets what this node tells of its sound and picture; the flags of call and channel stay.
  public mutating func setFlags(_ flags: HelloFlags, at now: Instant) -> [Output] {
    let kept = own.flags.intersection([.inCall, .left])
    return commit(at: now) { state in
      state.own.flags = flags.intersection(Self.settableFlags).union(kept)
      return []
    }
  }

  private static let settableFlags: HelloFlags = [
    .audioMuted, .videoMuted, .speaking, .sharing, .pattern, .audio,
  ]

  /// Sets the simulcast layers that this node offers, smallest first.
  public mutating func setLayers(_ layers: [VideoLayer], at now: Instant) -> [Output] {
    commit(at: now) { state in
      state.own.layers = Array(layers.prefix(Limits.spatialLayers))
      return []
    }
  }

  /// Joins the active call, or starts one as its initiator when there is none.
  public mutating func startOrJoinCall(
    proposing id: CallID, startedAt: UInt64, at now: Instant
  ) -> [Output] {
    guard own.call == nil else { return [] }
    let proposed = CallInfo(id: id, initiator: identity.id, startedAt: startedAt)
    return commit(at: now) { state in
      state.own.call = state.call?.info ?? proposed
      return state.settle()
    }
  }

  /// Leaves the call; when this node is its initiator, the call is over for all.
  public mutating func leaveCall(at now: Instant) -> [Output] {
    commit(at: now) { state in
      state.dropCall()
      return state.settle()
    }
  }

  /// Leaves the call and the channel: the last hello, resent until everyone has it.
  public mutating func leave(at now: Instant) -> [Output] {
    commit(at: now) { state in
      state.dropCall()
      state.own.flags.insert(.left)
      return state.settle()
    }
  }

  private mutating func dropCall() {
    guard let call = own.call else { return }
    own.call = nil
    guard call.initiator == identity.id else { return }
    own.endedCall = call.id
    ended.insert(call.id, by: identity.id)
  }

  /// Resends what has not been acknowledged and refreshes what has; harmless before `deadline`.
  public mutating func tick(at now: Instant) -> [Output] {
    var outputs: [Output] = []
    for index in 0..<peers.count {
      guard let due = peers[at: index].delivery.nextAt, due <= now else { continue }
      peers[at: index].delivery.resent(at: now)
      outputs.append(.send(.hello(signedHello()), to: peers.keys[index]))
    }
    return outputs
  }

  public var deadline: Instant? { peers.compactMap(\.value.delivery.nextAt).min() }

  /// Makes one change of any kind: what it does to this node's own hello is published once.
  mutating func commit(
    at now: Instant, _ change: (inout ChannelState) -> [ChannelEvent]
  ) -> [Output] {
    guard !hasLeft else { return [] }
    let before = own
    let events = change(&self)
    return (own == before ? [] : publish(at: now)) + events.map { .event($0) }
  }

  /// Never below the boot clock, so that a node that leaves the channel and joins it again within
  /// one boot goes on above what it said before.
  mutating func advanceSequence(at now: Instant) {
    let clock = UInt64(clamping: now.nanoseconds / 1000)
    own.sequence = max(own.sequence &+ 1, clock)
    signed = nil
  }

  private mutating func publish(at now: Instant) -> [Output] {
    advanceSequence(at: now)
    return (0..<peers.count).map { index in
      peers[at: index].delivery = HelloDelivery(sentAt: now)
      return .send(.hello(signedHello()), to: peers.keys[index])
    }
  }

  mutating func signedHello() -> [UInt8] {
    if let signed { return signed }
    let fresh = SignedHello.encode(own, by: identity, in: channel)
    signed = fresh
    return fresh
  }
}
