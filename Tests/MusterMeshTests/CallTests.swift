import MusterBase
import MusterCrypto
import MusterMesh
import MusterWire
import Testing

/// The one call of a channel: who starts, joins, leaves and ends it.
struct CallTests {
  private let t = seconds(10)

  /// Three linked nodes; the first has started call 7, the second has joined it.
  private func roomInCall() -> Room {
    var room = Room(3)
    room.linkAll()
    room.run(for: .seconds(1))
    room.start(0, 7, startedAt: 100)
    room.run(for: .seconds(1))
    room.start(1, 8, startedAt: 200)
    room.run(for: .seconds(1))
    return room
  }

  private func callEvents(_ room: Room, _ node: Int) -> [ChannelEvent] {
    room.events[node].filter {
      switch $0 {
      case .memberJoined, .memberUpdated, .memberLeft: false
      default: true
      }
    }
  }

  private func active(_ room: Room, _ nodes: [Int]) -> ActiveCall {
    ActiveCall(
      info: testCall(7, by: 1, startedAt: 100), participants: nodes.map { room.id($0) }.sorted())
  }

  @Test func startingWhenACallIsOnJoinsIt() {
    let room = roomInCall()
    let both = active(room, [0, 1])
    for node in 0..<3 {
      #expect(
        callEvents(room, node) == [
          .callStarted(active(room, [0])), .callJoined(both, room.id(1)),
        ])
      #expect(room.states[node].call == both)
    }
    #expect(room.states.map(\.isInCall) == [true, true, false])
    #expect(room.states[2].members.filter(\.isInCall).count == 2)
    #expect(room.states[1].ownMember.flags.contains(.inCall))
  }

  @Test func aParticipantWhoLeavesChangesNothingForTheRest() {
    var room = roomInCall()
    room.perform(1) { $0.leaveCall(at: $1) }
    room.run(for: .seconds(1))
    let left = active(room, [0])
    for node in 0..<3 {
      #expect(callEvents(room, node).dropFirst(2) == [.callLeft(left, room.id(1), .left)])
      #expect(room.states[node].call == left)
    }
  }

  @Test func theInitiatorWhoLeavesEndsTheCallForAll() {
    var room = roomInCall()
    room.perform(0) { $0.leaveCall(at: $1) }
    room.run(for: .seconds(1))
    for node in 0..<3 {
      #expect(
        callEvents(room, node).dropFirst(2) == [.callEnded(left(room).info, reason: "ended")])
      #expect(room.states[node].call == nil)
      #expect(!room.states[node].isInCall)
    }
  }

  private func left(_ room: Room) -> ActiveCall { active(room, [0]) }

  @Test func theInitiatorWhoLeavesTheChannelEndsTheCallToo() {
    var room = roomInCall()
    room.perform(0) { $0.leave(at: $1) }
    room.run(for: .seconds(1))
    #expect(room.states[1].call == nil && room.states[2].call == nil)
    #expect(!room.states[1].isInCall)
    #expect(room.states[1].members.map(\.id) == [room.id(2)])
  }

  @Test func aNewCallCanFollowAnEndedOne() {
    var room = roomInCall()
    room.perform(0) { $0.leaveCall(at: $1) }
    room.run(for: .seconds(1))
    room.start(2, 9, startedAt: 50)
    room.run(for: .seconds(1))
    for node in 0..<3 {
      #expect(room.states[node].call?.info == testCall(9, by: 3, startedAt: 50))
    }
  }

  @Test func theCallOutlivesAnInitiatorWhoVanishes() {
    var room = roomInCall()
    room.unlink(0, 1)
    room.unlink(0, 2)
    room.run(for: .seconds(1))
    let rest = active(room, [1])
    #expect(room.states[1].call == rest && room.states[2].call == rest)
    let gone = room.events[2].suffix(2)
    #expect(gone.first == .callLeft(rest, room.id(0), .crashed))
    if case .memberLeft(let member, .crashed) = gone.last {
      #expect(member.id == room.id(0))
    } else {
      Issue.record("no leave of the member")
    }
  }

  @Test func aCallThatNobodyIsInIsOver() {
    var room = roomInCall()
    room.unlink(0, 2)
    room.unlink(1, 2)
    let info = testCall(7, by: 1, startedAt: 100)
    #expect(callEvents(room, 2).last == .callEnded(info, reason: "empty"))
    #expect(room.states[2].call == nil)
    // It goes on elsewhere, and is seen again when the network heals.
    room.link(1, 2)
    room.run(for: .seconds(1))
    #expect(room.states[2].call?.info == info)
  }

  @Test func aLateComerSeesTheCallAndWhoIsInIt() {
    var room = Room(3)
    room.link(0, 1)
    room.run(for: .seconds(1))
    room.start(0, 7, startedAt: 100)
    room.start(1, 8, startedAt: 200)
    room.run(for: .seconds(1))
    room.link(2, 0)
    room.link(2, 1)
    room.run(for: .seconds(1))
    #expect(room.states[2].call == active(room, [0, 1]))
    #expect(!room.states[2].isInCall)
  }

  @Test(arguments: [(100, 100), (100, 200), (300, 200)] as [(UInt64, UInt64)])
  func concurrentStartsSettleOnTheEarlier(first: UInt64, second: UInt64) {
    var room = Room(3)
    room.linkAll()
    room.run(for: .seconds(1))
    room.start(0, 7, startedAt: first)
    room.start(1, 8, startedAt: second)
    room.run(for: .seconds(1))
    let winner =
      first <= second
      ? testCall(7, by: 1, startedAt: first) : testCall(8, by: 2, startedAt: second)
    let loser =
      first <= second
      ? testCall(8, by: 2, startedAt: second) : testCall(7, by: 1, startedAt: first)
    let settled = ActiveCall(info: winner, participants: [room.id(0), room.id(1)].sorted())
    for node in 0..<3 { #expect(room.states[node].call == settled) }

    let mover = loser.initiator == room.id(0) ? 0 : 1
    #expect(
      callEvents(room, mover).dropFirst() == [
        .callEnded(loser, reason: "merged"), .callStarted(settled),
      ])
  }

  @Test func partitionsThatHealSettleOnOneCall() {
    var room = Room(4)
    room.link(0, 1)
    room.link(2, 3)
    room.run(for: .seconds(1))
    room.start(0, 7, startedAt: 100)
    room.start(3, 8, startedAt: 50)
    room.run(for: .seconds(1))
    room.start(1, 9, startedAt: 300)
    room.start(2, 10, startedAt: 300)
    room.run(for: .seconds(1))
    room.linkAll()
    room.run(for: .seconds(2))
    let all = ActiveCall(
      info: testCall(8, by: 4, startedAt: 50), participants: (0..<4).map { room.id($0) }.sorted())
    for node in 0..<4 { #expect(room.states[node].call == all) }
  }

  @Test func anEndedCallNeverComesBack() {
    var a = testChannel(1)
    let (b, c) = (testIdentity(2).id, testIdentity(3).id)
    let call = testCall(7, by: 2, startedAt: 100)
    _ = a.linkUp(b, at: t)
    _ = a.linkUp(c, at: t)
    _ = a.receiveHello(signedHello(2, sequence: 1, call: call), from: b, at: t)
    _ = a.receiveHello(signedHello(3, sequence: 1, call: call), from: c, at: t)
    let ended = a.receiveHello(signedHello(2, sequence: 2, endedCall: call.id), from: b, at: t)
    #expect(ended.events.contains(.callEnded(call, reason: "ended")))

    // One has not heard of it, one is in it again.
    let claims = [
      a.receiveHello(
        signedHello(3, sequence: 2, flags: .speaking, call: call), from: c, at: t),
      a.receiveHello(signedHello(2, sequence: 3, call: call), from: b, at: t),
    ]
    for outputs in claims {
      for event in outputs.events {
        if case .memberUpdated = event { continue }
        Issue.record("\(event)")
      }
    }
    #expect(a.call == nil)
    _ = a.startOrJoinCall(proposing: CallID(high: 0, low: 9), startedAt: 500, at: t)
    #expect(a.call?.info == testCall(9, by: 1, startedAt: 500))
  }

  @Test func nobodyEndsTheCallOfAnother() {
    var a = testChannel(1)
    let (b, c) = (testIdentity(2).id, testIdentity(3).id)
    let call = testCall(7, by: 2, startedAt: 100)
    _ = a.linkUp(b, at: t)
    _ = a.linkUp(c, at: t)
    _ = a.receiveHello(signedHello(2, sequence: 1, call: call), from: b, at: t)
    _ = a.receiveHello(signedHello(3, sequence: 1, endedCall: call.id), from: c, at: t)
    #expect(a.call?.info == call)
  }

  @Test func whoMissedTheEndIsTold() {
    var room = Room(2)
    room.linkAll()
    room.run(for: .seconds(1))
    room.start(0, 7, startedAt: 100)
    room.run(for: .seconds(1))
    room.start(1, 8, startedAt: 200)
    room.run(for: .seconds(1))
    room.unlink(0, 1)
    room.perform(0) { $0.leaveCall(at: $1) }
    room.start(0, 9, startedAt: 300)
    room.perform(0) { $0.leaveCall(at: $1) }
    #expect(room.states[1].isInCall)
    room.link(0, 1)
    room.run(for: .seconds(2))
    #expect(!room.states[1].isInCall)
    #expect(room.states.allSatisfy { $0.call == nil })
    #expect(
      room.events[1].contains(.callEnded(testCall(7, by: 1, startedAt: 100), reason: "ended")))
  }

  @Test func aParticipantThatStartsAgainHasLeftTheCall() {
    var a = testChannel(1)
    let b = testIdentity(2).id
    let call = testCall(7, by: 2, startedAt: 100)
    _ = a.linkUp(b, at: t)
    _ = a.receiveHello(signedHello(2, sequence: 1, call: call), from: b, at: t)
    let outputs = a.receiveHello(signedHello(2, bootID: 2, sequence: 1), from: b, at: t)
    #expect(
      outputs.events.prefix(2) == [
        .callLeft(ActiveCall(info: call, participants: []), b, .replaced),
        .callEnded(call, reason: "empty"),
      ])
    #expect(outputs.events.count == 4)
  }

  @Test func endedCallsAreBoundedPerMember() {
    var a = testChannel(1)
    let (b, c) = (testIdentity(2).id, testIdentity(3).id)
    let call = testCall(7, by: 2, startedAt: 100)
    _ = a.linkUp(b, at: t)
    _ = a.linkUp(c, at: t)
    _ = a.receiveHello(signedHello(2, sequence: 1, call: call), from: b, at: t)
    _ = a.receiveHello(signedHello(2, sequence: 2, endedCall: call.id), from: b, at: t)
    // Another member's many ends do not bring it back.
    for number in 1...200 as ClosedRange<UInt64> {
      let id = CallID(high: 1, low: number)
      let hello = signedHello(3, sequence: number, endedCall: id)
      _ = a.receiveHello(hello, from: c, at: seconds(10 + Double(number)))
    }
    _ = a.receiveHello(signedHello(2, sequence: 3, call: call), from: b, at: seconds(300))
    #expect(a.call == nil)
  }
}
