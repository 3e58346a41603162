import MusterBase
import MusterChannel
import MusterCrypto
import MusterWire
import Testing

/// The initiator's role expires while its call is on.
struct ChannelStateExpiryTests {
  /// In this world the wall clocks equal boot time.
  private static let expiry = seconds(20)

  /// An owner and a presenter in the presenter's call, half a second before its role expires.
  private func expiring() -> ChannelStateWorld {
    var world = ChannelStateWorld(2, settings: ChannelSettings())
    // This offset makes the last evaluation of the rights fall into the middle of a second.
    world.run(for: .milliseconds(300))
    let presenter = world.ids[1]
    world.act(0) { $0.grant(.presenter, to: presenter, expiresAt: 20, at: $1) }
    world.connect(1, to: [0])
    world.run(for: .seconds(2))
    world.startOrJoin(1, proposing: 1)
    world.startOrJoin(0, proposing: 2)
    world.run(for: Self.expiry - world.now - .milliseconds(500))
    for node in world.nodes { #expect(node.state.call?.participants == world.ids.sorted()) }
    world.forgetEvents()
    return world
  }

  @Test func theCallEndsWithTheRoleToTheNanosecond() {
    var world = expiring()
    world.run(for: .nanoseconds(499_999_999))
    for node in world.nodes { #expect(node.state.call != nil && node.events.isEmpty) }
    world.run(for: .nanoseconds(1))
    #expect(world.now == Self.expiry)
    for node in world.nodes {
      #expect(node.state.call == nil && !node.state.isInCall)
      #expect(node.events.callEnds == [CallEndReason.empty])
    }
    #expect(world.nodes[1].events.contains(.ownRoleChanged(.none)))
    #expect(world.nodes[0].events.left.map(\.reason) == [.removed])
  }

  @Test func aCommandBeforeTheTimerFindsTheRoleExpired() {
    var world = expiring()
    var outputs: [ChannelState.Output] = []
    world.act(1) { state, now in
      outputs = state.leaveCall(at: now + .milliseconds(700))
      return outputs
    }
    #expect(world.nodes[1].events.first == .ownRoleChanged(.none))
    #expect(world.nodes[1].events.callEnds == [CallEndReason.empty])
    // Without the role, this node has no right to end the call.
    for case .commit(let entries, _) in outputs {
      #expect(entries.allSatisfy { $0.entry.body.kind != .end })
    }
  }

  @Test func aStepOfTheWallClockCountsAtOnce() {
    var world = expiring()
    for (offset, role) in [(1000, .none), (0, .presenter)] as [(Int64, Role)] {
      world.forgetEvents()
      world.act(1) { state, now in
        state.setWallClock(offsetMilliseconds: offset, at: now)
        return []
      }
      #expect(world.nodes[1].state.deadline.map { $0 <= world.now } == true)
      world.run(for: .milliseconds(1))
      #expect(world.nodes[1].events.contains(.ownRoleChanged(role)))
    }
  }

  /// Roles end at 20 s, at 20 s and at 60 s.
  @Test func keyChangesForExpiredRolesAreAnHourApart() {
    var world = ChannelStateWorld(4, settings: ChannelSettings())
    world.run(for: .milliseconds(300))
    for (index, end) in [(1, 20), (2, 20), (3, 60)] as [(Int, UInt64)] {
      let member = world.ids[index]
      world.act(0) { $0.grant(.presenter, to: member, expiresAt: end, at: $1) }
    }
    world.run(for: Self.expiry - world.now - .milliseconds(1))
    #expect(world.nodes[0].state.keyChangeDueAt == nil)
    world.run(for: .milliseconds(1))
    #expect(world.nodes[0].state.keyChangeDueAt == Self.expiry + .milliseconds(500))
    world.run(for: .milliseconds(500))
    let changedAt = world.now
    world.act(0) { state, now in
      state.noteKeyChangeAttempt(at: now)
      return state.changeKey(to: ChannelKey.fromName("next").keyID, removing: [], at: now)
    }
    world.run(for: .milliseconds(100))
    #expect(world.nodes[0].state.currentEpoch == 1)
    #expect(world.nodes[0].state.keyChangeDueAt == nil)
    world.run(for: .seconds(50))
    #expect(world.nodes[0].state.keyChangeDueAt == changedAt + .seconds(3600))
    // Other members leave it to the owner.
    #expect(world.nodes.dropFirst().allSatisfy { $0.state.keyChangeDueAt == nil })
    // The change that is made for another reason covers the role.
    world.act(0) { $0.changeKey(to: ChannelKey.fromName("third").keyID, removing: [], at: $1) }
    world.run(for: .milliseconds(100))
    #expect(world.nodes[0].state.keyChangeDueAt == nil)
    #expect(
      world.ids.dropFirst().map { world.nodes[0].state.refusal(of: $0) }
        == [.expired, .expired, .expired])
  }
}
