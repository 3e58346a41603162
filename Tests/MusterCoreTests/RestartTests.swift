import MusterBase
import MusterCongestion
import MusterCore
import MusterCrypto
import MusterLink
import MusterWire
import Testing

/// A restarted member is reached directly, at its former address, and not through a relay.
@Test func aRestartedMemberIsReachedDirectlyAtOnce() {
  var world = CoreWorld(3)
  let key = ChannelKey.fromName("restart")
  world.join("restart", key)
  world.run(for: .seconds(3))
  #expect(world.address(from: 0, to: 1, in: key.channelID) == world.hosts[1].address)
  // Discovery is blocked, as behind NATs: only gossip reports that the member is back.
  world.passes = { from, to, kind in
    Set([from, to]) != [0, 1] || kind != .announcement && kind != .challenge
  }
  world.restart(1)
  world.joinAlone(1, "restart", key)
  let begun = world.now
  var reachedAfter: Duration?
  while world.now - begun < .seconds(8) {
    world.run(for: .milliseconds(20))
    #expect(world.relay(from: 0, to: 1, in: key.channelID) == nil)
    #expect(world.relay(from: 1, to: 0, in: key.channelID) == nil)
    if reachedAfter == nil, world.address(from: 1, to: 0, in: key.channelID) != nil {
      reachedAfter = world.now - begun
    }
  }
  #expect(
    reachedAfter.map { $0 < .milliseconds(600) } ?? false, "\(String(describing: reachedAfter))")
  #expect(world.hosts[2].node.relayedPairs(at: world.now).isEmpty)
}

/// The invariants of all nodes hold while members restart.
@Test func nodesKeepTheirInvariantsWhileMembersRestart() {
  var world = CoreWorld(4)
  let key = ChannelKey.fromName("restart")
  world.join("restart", key)
  for index in [1, 3, 0] {
    world.run(for: .seconds(2))
    world.restart(index)
    world.joinAlone(index, "restart", key)
  }
  world.passes = { from, to, _ in Set([from, to]) != [0, 2] }
  world.run(for: .seconds(6))
  world.passes = { _, _, _ in true }
  world.run(for: .seconds(6))
  for host in world.hosts { #expect(host.node.checkInvariants() == []) }
}

/// The silence of its former process could otherwise keep the circuit breaker open for 30 s.
@Test func theEstimateOfARestartedMemberBeginsAnew() {
  var world = CoreWorld(2)
  let key = ChannelKey.fromName("restart")
  world.join("restart", key)
  world.run(for: .seconds(5))
  func estimate() -> DataRate? { world.estimate(from: 0, to: 1, in: key.channelID) }
  #expect(estimate().map { $0 > PathController.start } == true)
  world.restart(1)
  world.joinAlone(1, "restart", key)
  let before = world.hosts[0].events.count
  var isReplaced = false
  for _ in 0..<5000 where !isReplaced {
    world.run(for: .milliseconds(1))
    isReplaced = world.hosts[0].events.dropFirst(before).contains {
      if case .linkDown(_, .replaced) = $0 { true } else { false }
    }
  }
  #expect(isReplaced && estimate() == nil)
  world.run(for: .seconds(3))
  #expect(estimate().map { $0 > PathController.start } == true)
  for host in world.hosts { #expect(host.node.checkInvariants() == []) }
}
