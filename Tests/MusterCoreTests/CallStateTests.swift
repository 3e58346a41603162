import MusterBase
import MusterChannel
import MusterCore
import MusterCrypto
import MusterSimulator
import MusterWire
import Testing

/// A node's reports of its own `call.state`.
struct CallStateTests {
  private static let key = ChannelKey.fromName("\(Marker.text) state")

  private func talking() -> CoreWorld {
    var world = CoreWorld(2)
    world.join("\(Marker.text) state", Self.key)
    world.run(for: .seconds(5))
    return world
  }

  private func states(_ world: CoreWorld) -> [CallState] {
    world.hosts[0].events.compactMap { if case .callState(let state) = $0 { state } else { nil } }
  }

  @Test func aNodeWhoseOnlyPartnerCrashedIsConnectedAlone() {
    var world = talking()
    #expect(states(world).last == .connected)
    world.passes = { _, _, _ in false }
    var elapsed = Duration.zero
    while world.hosts[0].node.members(of: Self.key.channelID).count > 0, elapsed < .seconds(20) {
      world.run(for: .milliseconds(100))
      elapsed += .milliseconds(100)
    }
    #expect(elapsed < .seconds(20))
    #expect(states(world).suffix(2) == [.reconnecting, .connected])
    #expect(world.hosts[0].node.checkInvariants() == [])
  }

  /// Its paths to the participant lead through a member that is not in the call.
  @Test func aNodeThatJoinsOverARelayIsConnectedOnce() {
    var world = CoreWorld(3)
    world.passes = { from, to, _ in from == 2 || to == 2 }
    let setup = ChannelSetup(name: "\(Marker.text) state", key: Self.key)
    for (index, call) in [(2, false), (1, true)] {
      world.call(index) { $0.join(setup, call: call, at: $1) }
    }
    world.run(for: .seconds(5))
    world.call(0) { $0.join(setup, call: true, at: $1) }
    world.run(for: .seconds(10))
    #expect(states(world) == [.connecting, .connected])
    #expect(world.hosts[0].node.checkInvariants() == [])
  }

  /// While it waits for others to acknowledge that it leaves, it hears of a call that it was
  /// waiting for, or its wait for one is over.
  @Test(arguments: [false, true]) func aNodeThatLeavesTheChannelEntersNoCall(others: Bool) {
    var world = CoreWorld(2)
    let setup = ChannelSetup(name: "\(Marker.text) state", key: Self.key)
    world.call(0) { $0.join(setup, call: true, at: $1) }
    if others { world.call(1) { $0.join(setup, call: true, at: $1) } }
    world.run(for: .milliseconds(20))
    world.call(0) { $0.leave(Self.key.channelID, at: $1) }
    world.run(for: .seconds(8))
    let isInCall = world.hosts[0].node.isInCall(Self.key.channelID)
    #expect(!isInCall)
    #expect(states(world) == [.connecting, .disconnected])
    #expect(world.hosts[0].node.checkInvariants() == [])
  }

  @Test func aMemberThatLeftTheCallDoesNotSpeak() {
    var world = talking()
    let channel = Self.key.channelID
    func speaks() -> Bool? {
      world.hosts[0].node.members(of: channel).first?.flags.contains(.speaking)
    }
    #expect(speaks() == true)
    world.call(1) { $0.leaveCall(in: channel, at: $1) }
    world.run(for: .seconds(1))
    #expect(speaks() == false)
  }
}
