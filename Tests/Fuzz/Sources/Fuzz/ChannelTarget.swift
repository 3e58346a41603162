import MusterBase
import MusterChannel
import MusterCrypto
import MusterDiscovery
import MusterWire

/// A channel's state, fed with signed entries of members and commands of the node's user.
///
/// Promises: members are those that entries name, with sanitised names; a participant knows its
/// call; a call has participants; messages fit into a datagram; `tick` terminates. In a created
/// channel nobody has a role without a grant.
struct ChannelTarget {
  /// The kind of channel, which determines who may write in it.
  private enum Kind: Int {
    case open, created, ownerless
  }

  private let kind: Kind
  private var state: ChannelState
  private var scribe: Scribe
  private var now = Instant(nanoseconds: 1_000_000_000)
  private var neighbours: [NodeID] = []

  static func run(_ bytes: [UInt8]) {
    var program = Program(bytes)
    var target = ChannelTarget(Kind(rawValue: program.below(3)) ?? .open)
    while !program.isAtEnd { target.step(&program) }
  }

  private init(_ kind: Kind) {
    self.kind = kind
    let genesis = kind == .open ? nil : Cast.genesis
    let channel = genesis?.channelID ?? Cast.key.channelID
    // Another process has this node's key, as from a copied data directory.
    let members = [Cast.other, Cast.third, Cast.own]
    scribe = Scribe(
      channel: channel, authors: kind == .created ? members + [Cast.owner] : members)
    state = ChannelState(
      ChannelState.Setup(
        identity: Cast.own, channel: channel, genesis: genesis, name: "fuzz", bootID: 1,
        entropy: .seeded(1), seed: 1))
    perform(state.enter(at: now))
    meet(Cast.other.id, bootID: 1)
  }

  private mutating func step(_ program: inout Program) {
    let peer = program.bit() ? Cast.other.id : Cast.third.id
    switch program.u8() % 16 {
    case 0: wait(program.duration(), hears: program.bit())
    case 1: meet(peer, bootID: UInt64(program.u8() & 3))
    case 2: part(from: peer, program.bit() ? .left : .crashed)
    case 3:
      let payload = [PayloadKind.controlByte] + program.bytes()
      for message in (try? Control.decode(payload)) ?? [] {
        perform(state.receive(message, from: peer, at: now))
      }
    case 4:
      perform(state.receiveCredential(scribe.entry(&program).bytes, from: peer, at: now).outputs)
    case 5: probe(&program, from: peer)
    case 6: perform(act(&program))
    case 7:
      let seconds = Int64(program.u16())
      state.setWallClock(offsetMilliseconds: seconds * 1000, at: now)
    default:
      perform(state.receive(.entry(scribe.entry(&program).bytes), from: peer, at: now))
    }
    verify()
  }

  /// A command of the node's user.
  private mutating func act(_ program: inout Program) -> [ChannelState.Output] {
    let action = program.u8()
    switch action % 7 {
    case 0:
      let id = CallID(high: UInt64(program.u8() & 3), low: 1)
      return state.startOrJoinCall(proposing: id, startedAt: program.u64(), at: now)
    case 1: return state.leaveCall(handsOver: action > 127, at: now)
    case 2: return state.leave(at: now)
    case 3: return state.setFlags(MemberFlags(rawValue: program.u16()), at: now)
    case 4:
      let size = VideoSize(width: Int(program.u16()), height: Int(program.u16()))
      let stream = StreamID.all[program.below(StreamID.all.count)]
      let layers = [VideoLayer(size: size, framesPerSecond: 30)]
      return state.setStreams(
        [StreamOffer(stream, isMuted: program.bit(), layers: layers)], at: now)
    case 5:
      let grant = scribe.written.last?.bytes ?? []
      return state.redeem(grant: grant, secret: Cast.oneTime, at: now)
    default:
      let text = String(decoding: program.bytes(), as: UTF8.self)
      let receiver = program.bit() ? Cast.other.id : nil
      return text.isEmpty ? [] : state.say(text, to: receiver, at: now)
    }
  }

  private mutating func probe(_ program: inout Program, from peer: NodeID) {
    let target = program.bit() ? Cast.other.id : Cast.third.id
    let token = program.u64()
    let message: Control =
      program.bit()
      ? .probe(target, token: token)
      : .probed(target, token: token, answered: program.bit())
    perform(state.receive(message, from: peer, at: now))
  }

  private mutating func meet(_ peer: NodeID, bootID: UInt64) {
    if !neighbours.contains(peer) { neighbours.append(peer) }
    perform(state.linkUp(peer, bootID: bootID, at: now))
  }

  private mutating func part(from peer: NodeID, _ reason: LeaveReason) {
    neighbours.removeAll { $0 == peer }
    perform(state.linkDown(peer, reason: reason, at: now))
  }

  private mutating func wait(_ duration: Duration, hears: Bool) {
    now = now + duration
    // A deadline that never moves would make a shell spin.
    var rounds = 0
    repeat {
      rounds += 1
      check(rounds <= 16, "work that is due ends")
      let heard = hears ? now : nil
      let outputs = state.tick(at: now, lastHeard: { _ in heard }, roundTrip: { _ in nil })
      perform(outputs)
      for case .fail(let peer) in outputs { part(from: peer, .crashed) }
    } while state.deadline.map { $0 <= now } ?? false
  }

  private func perform(_ outputs: [ChannelState.Output]) {
    for case .send(let message, to: _) in outputs { check(fits(message), "a datagram fits") }
  }

  private func verify() {
    let members = state.members
    check(members.map(\.id) == members.map(\.id).sorted(), "members are sorted")
    for member in members {
      check(member.id != state.ownMember.id, "a node does not see itself")
      check(member.role > .none, "who has no role is no member")
      check(!member.name.isEmpty && isSafe(member.name), "a name is safe to show")
    }
    if let call = state.call {
      check(!call.participants.isEmpty, "a call has someone in it")
      check(call.participants == call.participants.sorted(), "participants are sorted")
    }
    check(!state.isInCall || state.call != nil, "who is in a call knows of it")
    if kind == .ownerless { verifyNobody() }
  }

  private func isSafe(_ name: String) -> Bool {
    DisplayText.sanitized(name, limit: Limits.nameBytes) == name
  }

  /// Without any entry of the owner, entries of others have no effect.
  private func verifyNobody() {
    check(state.members.isEmpty, "nobody is a member")
    check(state.call == nil && state.history.isEmpty, "nobody calls or writes")
    check(state.currentEpoch == 0, "nobody changes the key")
    for id in [Cast.own.id, Cast.other.id, Cast.third.id] {
      check(state.role(of: id) == .none && state.refusal(of: id) != nil, "nobody has a role")
    }
  }
}
