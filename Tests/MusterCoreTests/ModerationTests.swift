import MusterBase
import MusterChannel
import MusterCore
import MusterWire
import Testing

/// Media of members that are muted for everyone, or removed from the call.
struct ModerationTests {
  /// The owner, host 1 with this role and a presenter in a call, all with a camera and audio.
  private func call(_ role: Role = .attendee) throws -> KeyWorld {
    var keys = try KeyWorld(3, joining: [0, 1, 2])
    keys.grant(role, to: 1)
    keys.world.run(for: .seconds(1))
    let channel = keys.channel
    for index in [0, 1, 2] {
      keys.world.call(index) { (try? $0.startCall(in: channel, at: $1)) ?? [] }
      keys.world.run(for: .seconds(1))
    }
    try #require(keys.world.activeCall(0, in: channel)?.participants.count == 3)
    return keys
  }

  private func refusal(
    _ keys: inout KeyWorld, _ index: Int,
    _ body: (inout Node, Instant) throws(CommandRefusal) -> [Node.Output]
  ) -> CommandRefusal? {
    var refusal: CommandRefusal?
    keys.world.call(index) { node, now in
      do { return try body(&node, now) } catch {
        refusal = error as? CommandRefusal
        return []
      }
    }
    return refusal
  }

  @Test func aMutedMemberIsSilentUntilItsUserUnmutes() throws {
    var keys = try call()
    let (channel, member) = (keys.channel, keys.world.id(1))
    var media = keys.received()
    #expect(media.frames > 0 && media.audio > 0)
    let refused = refusal(&keys, 2) { node, now throws(CommandRefusal) in
      try node.mute(.audio, of: member, in: channel, at: now)
    }
    #expect(refused == nil)
    keys.world.run(for: .seconds(1))
    media = keys.received()
    #expect(media.frames > 0 && media.audio == 0)
    let seen = keys.world.hosts[0].node.member(member, of: channel)
    #expect(seen?.flags.contains(.audioMuted) == true)
    keys.world.call(1) { $0.setMuted(audio: false, in: channel, at: $1) }
    #expect(keys.received().audio > 0)
    #expect(keys.contradictions() == [])
  }

  @Test func aRemovedMemberGetsAndSendsNothing() throws {
    var keys = try call()
    let (channel, member, owner) = (keys.channel, keys.world.id(1), keys.world.id(0))
    let refused = refusal(&keys, 0) { node, now throws(CommandRefusal) in
      try node.removeFromCall(member, in: channel, at: now)
    }
    #expect(refused == nil)
    keys.world.run(for: .seconds(1))
    #expect(keys.world.hosts[1].node.callState(in: channel) == .disconnected)
    let link = LinkID(channel: channel, peer: owner)
    let before = keys.world.hosts[1].shown[link] ?? 0
    keys.world.hosts[1].clear()
    let media = keys.received()
    #expect(media.frames == 0 && media.audio == 0)
    #expect(keys.world.hosts[1].shown[link] ?? 0 == before)
    #expect(keys.world.hosts[1].heard[owner]?.count ?? 0 == 0)
    let again = refusal(&keys, 1) { node, now throws(CommandRefusal) in
      try node.startCall(in: channel, at: now)
    }
    #expect(again == .removedFromCall(by: owner))
    // It is still a member, and can write.
    #expect(keys.world.hosts[0].node.member(member, of: channel) != nil)
    #expect(keys.contradictions() == [])
  }

  @Test func whatMayNotBeDoneIsRefused() throws {
    var keys = try call(.presenter)
    let (channel, owner, equal) = (keys.channel, keys.world.id(0), keys.world.id(2))
    func refused(_ index: Int, _ member: NodeID) -> CommandRefusal? {
      refusal(&keys, index) { node, now throws(CommandRefusal) in
        try node.removeFromCall(member, in: channel, at: now)
      }
    }
    #expect(refused(1, equal) == .notLower(.presenter))
    #expect(refused(1, owner) == .notLower(.owner))
    #expect(refused(1, keys.world.id(1)) == .notLower(.presenter))
    keys.world.call(2) { $0.leaveCall(in: channel, at: $1) }
    keys.world.run(for: .seconds(1))
    #expect(refused(0, equal) == .notInCall)
    keys.grant(.attendee, to: 1)
    keys.world.run(for: .seconds(1))
    #expect(refused(1, owner) == .notAllowed(.moderate, .attendee))
  }
}
