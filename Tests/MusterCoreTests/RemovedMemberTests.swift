import MusterBase
import MusterChannel
import MusterCore
import MusterWire
import Testing

/// What a node that is no member any more sees of the others.
struct RemovedMemberTests {
  @Test func itSeesNobodyAfterARestart() throws {
    var keys = try KeyWorld(3, joining: [0, 1, 2])
    try keys.revoke(2)
    keys.world.run(for: .seconds(3))
    let stored = keys.world.hosts[2].node.entries(of: keys.channel).map(\.bytes)
    keys.world.restart(2)
    let before = keys.world.hosts[2].events.count
    keys.join(2, entries: stored)
    var linked = 0
    for _ in 0..<100 {
      keys.world.run(for: .milliseconds(100))
      linked = max(linked, keys.world.hosts[2].node.statistics(at: keys.world.now).count)
    }
    let events = keys.world.hosts[2].events.dropFirst(before)
    #expect(links(events).isEmpty && members(events) == [] && linked == 0)
    #expect(keys.refusals(of: 2).last == .removed)
    #expect(keys.contradictions() == [])
  }

  /// It takes the others for members until it hears that it is none itself.
  @Test func itSeesTheOthersUntilItHearsOfTheRemoval() throws {
    var keys = try KeyWorld(3, joining: [0, 1, 2])
    keys.world.restart(2)
    keys.world.run(for: .seconds(1))
    try keys.revoke(2)
    keys.world.run(for: .seconds(10))
    let before = keys.world.hosts[2].events.count
    keys.join(2)
    keys.world.run(for: .seconds(4))
    let events = keys.world.hosts[2].events.dropFirst(before)
    let (ups, downs) = (links(events).filter(\.1), links(events).filter { !$0.1 })
    #expect(!ups.isEmpty && ups.count == downs.count)
    #expect(keys.world.hosts[2].node.members(of: keys.channel).isEmpty)
    #expect(keys.refusals(of: 2) == [.removed])
    #expect(keys.contradictions() == [])
  }

  @Test func itSeesTheOthersAgainOnceItIsAMember() throws {
    var keys = try KeyWorld(3, joining: [0, 1, 2])
    keys.grant(.attendee, to: 2, expiring: 5)
    keys.world.run(for: .seconds(8))
    #expect(keys.refusals(of: 2) == [.expired])
    let stored = keys.world.hosts[2].node.entries(of: keys.channel).map(\.bytes)
    keys.grant(.attendee, to: 2)
    keys.world.restart(2)
    let before = keys.world.hosts[2].events.count
    keys.join(2, entries: stored)
    keys.world.run(for: .seconds(25))
    let events = keys.world.hosts[2].events.dropFirst(before)
    #expect(Set(links(events).map(\.0)) == [keys.world.id(0), keys.world.id(1)])
    #expect(links(events).allSatisfy { $0.1 })
    #expect(members(events).count == 2)
    #expect(keys.world.hosts[2].node.statistics(at: keys.world.now).count == 2)
    #expect(keys.contradictions() == [])
  }

  @Test func itCannotJoinACallThatItDoesNotSee() throws {
    var keys = try KeyWorld(2, joining: [0, 1])
    let channel = keys.channel
    #expect(throws: CommandRefusal.noCall) {
      try keys.world.hosts[1].node.joinCall(in: channel, at: keys.world.now)
    }
    try keys.revoke(1)
    keys.world.run(for: .seconds(3))
    #expect(throws: CommandRefusal.notMember(.removed)) {
      try keys.world.hosts[1].node.joinCall(in: channel, at: keys.world.now)
    }
  }

  /// The links that come up (true) and go down (false).
  private func links(_ events: ArraySlice<NodeEvent>) -> [(NodeID, Bool)] {
    events.compactMap { event in
      switch event {
      case .linkUp(let peer, _, _): (peer, true)
      case .linkDown(let peer, _): (peer, false)
      default: nil
      }
    }
  }

  private func members(_ events: ArraySlice<NodeEvent>) -> [NodeID] {
    events.compactMap {
      if case .channel(.memberJoined(let member)) = $0 { member.id } else { nil }
    }
  }
}
