import MusterBase
import MusterChannel
import MusterCore
import MusterCrypto
import MusterSimulator
import MusterWire
import Testing

/// Calls that a node enters without being told, and those that it does not.
struct CallIntentTests {
  private static let name = "\(Marker.text) intent"
  private static let key = ChannelKey.fromName(name)
  private var channel: ChannelID { Self.key.channelID }

  /// Two linked members in no call; the second answers calls.
  private func answering() -> CoreWorld {
    var world = CoreWorld(2) { index, configuration in configuration.answersCalls = index == 1 }
    for index in world.hosts.indices {
      world.call(index) {
        $0.join(ChannelSetup(name: Self.name, key: Self.key), call: false, at: $1)
      }
    }
    world.run(for: .seconds(3))
    return world
  }

  private func start(_ index: Int, _ world: inout CoreWorld) {
    let channel = channel
    world.call(index) { (try? $0.startCall(in: channel, at: $1)) ?? [] }
    world.run(for: .seconds(3))
  }

  private func leave(_ index: Int, _ world: inout CoreWorld) {
    let channel = channel
    world.call(index) { $0.leaveCall(in: channel, at: $1) }
    world.run(for: .seconds(3))
  }

  private func isIn(_ world: CoreWorld) -> Bool { world.hosts[1].node.isInCall(channel) }

  private func isInOrEntering(_ index: Int, _ world: CoreWorld) -> Bool {
    world.hosts[index].node.isInOrEnteringCall(channel)
  }

  @Test func aNodeThatAnswersEntersEveryCallThatMembersStart() {
    var world = answering()
    #expect(!isIn(world) && !isInOrEntering(1, world))
    for _ in 0..<3 {
      start(0, &world)
      #expect(isIn(world))
      // The call ends for all.
      leave(0, &world)
      #expect(!isIn(world))
    }
  }

  @Test func theCallThatItsUserLeftIsNotEnteredAgain() {
    var world = answering()
    start(0, &world)
    leave(1, &world)
    #expect(world.activeCall(1, in: channel) != nil && !isIn(world))
    #expect(!isInOrEntering(1, world))
    let channel = channel
    world.call(0) { $0.setMuted(audio: true, in: channel, at: $1) }
    world.run(for: .seconds(3))
    #expect(!isIn(world))
    leave(0, &world)
    start(0, &world)
    #expect(isIn(world))
  }

  @Test func aCallThatWasLeftIsEnteredByCommand() {
    var world = answering()
    start(0, &world)
    leave(1, &world)
    start(1, &world)
    #expect(isIn(world) && isInOrEntering(1, world))
  }

  @Test func aNodeThatLeavesTheChannelAnswersNoMore() {
    var world = answering()
    let channel = channel
    world.call(1) { $0.leave(channel, at: $1) }
    start(0, &world)
    #expect(!isIn(world) && !world.hosts[1].events.contains(.callState(.connecting)))
  }

  /// The user changes their mind before the node has started a call.
  @Test func aCallThatIsDeclinedBeforeItBeginsIsNotStarted() {
    var world = CoreWorld(1)
    world.join(Self.name, Self.key)
    #expect(isInOrEntering(0, world))
    leave(0, &world)
    #expect(world.hosts[0].starts.isEmpty)
    #expect(world.hosts[0].events.last == .callState(.disconnected))
    #expect(!isInOrEntering(0, world))
  }
}
