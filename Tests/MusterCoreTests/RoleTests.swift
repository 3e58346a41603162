import MusterBase
import MusterChannel
import MusterCore
import MusterWire
import Testing

/// Roles that change while their holders are in a call.
struct RoleTests {
  /// The owner and host 1, which has this role, in a call; both have a camera and audio.
  private func call(_ role: Role) throws -> KeyWorld {
    var keys = try KeyWorld(2, joining: [0, 1])
    keys.grant(role, to: 1)
    keys.world.run(for: .seconds(1))
    let channel = keys.channel
    for index in [0, 1] {
      keys.world.call(index) { (try? $0.startCall(in: channel, at: $1)) ?? [] }
      keys.world.run(for: .seconds(1))
    }
    try #require(keys.world.activeCall(0, in: channel)?.participants.count == 2)
    return keys
  }

  private func held(_ keys: KeyWorld) -> [OwnMedia] {
    keys.world.hosts[1].events.compactMap {
      if case .mediaHeld(let media, _) = $0 { media } else { nil }
    }
  }

  @Test func aPromotionStartsNothingUntilTheUserDoes() throws {
    var keys = try call(.consumer)
    var media = keys.received()
    #expect(media.frames == 0 && media.audio == 0)
    keys.grant(.attendee, to: 1)
    media = keys.received()
    #expect(media.frames == 0 && media.audio == 0)
    #expect(held(keys) == [[.audio, .video]])
    let seen = keys.world.hosts[0].node.member(keys.world.id(1), of: keys.channel)
    #expect(seen?.role == .attendee && seen?.flags.contains([.audioMuted, .videoMuted]) == true)
    let channel = keys.channel
    keys.world.call(1) { $0.setMuted(audio: false, in: channel, at: $1) }
    media = keys.received()
    #expect(media.frames == 0 && media.audio > 0)
    keys.world.call(1) { $0.setMuted(video: false, at: $1) }
    #expect(keys.received().frames > 0)
  }

  /// A roster must not show a live microphone, not even for a moment.
  @Test func whatARoleDoesNotAllowIsSeenMuted() throws {
    var keys = try call(.consumer)
    keys.grant(.attendee, to: 1)
    keys.world.run(for: .seconds(1))
    keys.world.call(1) { $0.setMuted(audio: false, at: $1) }
    keys.world.run(for: .seconds(1))
    keys.grant(.consumer, to: 1)
    keys.world.run(for: .seconds(1))
    let seen = seen(keys)
    let roles = seen.map { "\($0.role.name) \($0.flags.contains(.audioMuted))" }
    let changes = roles.indices.filter { $0 == 0 || roles[$0] != roles[$0 - 1] }.map { roles[$0] }
    #expect(
      changes.suffix(4) == [
        "consumer true", "attendee true", "attendee false", "consumer true",
      ])
    for one in seen where one.role == .consumer {
      #expect(one.flags.isSuperset(of: [.audioMuted, .videoMuted]))
      #expect(!one.flags.contains(.speaking))
    }
  }

  /// The states of host 1 that the owner sees.
  private func seen(_ keys: KeyWorld) -> [Member] {
    keys.world.hosts[0].events.compactMap { event -> Member? in
      switch event {
      case .channel(.memberJoined(let seen)), .channel(.memberUpdated(let seen)): seen
      default: nil
      }
    }.filter { $0.id == keys.world.id(1) }
  }

  /// The presence of a new run says so from the beginning.
  @Test func aConsumerThatRestartsIsSeenMutedWhenPromoted() throws {
    var keys = try call(.consumer)
    let stored = keys.world.hosts[1].node.entries(of: keys.channel).map(\.bytes)
    keys.world.restart(1)
    keys.join(1, entries: stored)
    keys.world.run(for: .seconds(3))
    keys.world.hosts[0].clear()
    keys.grant(.attendee, to: 1)
    keys.world.run(for: .seconds(2))
    let promoted = seen(keys).filter { $0.role == .attendee }
    #expect(!promoted.isEmpty)
    for one in promoted { #expect(one.flags.isSuperset(of: [.audioMuted, .videoMuted])) }
  }

  @Test func whatFlowsGoesOnWithAHigherRole() throws {
    var keys = try call(.attendee)
    var media = keys.received()
    #expect(media.frames > 0 && media.audio > 0)
    keys.grant(.presenter, to: 1)
    media = keys.received()
    #expect(media.frames > 0 && media.audio > 0 && held(keys) == [])
  }

  @Test func aRoleThatComesBackStartsNothing() throws {
    var keys = try call(.attendee)
    keys.grant(.consumer, to: 1)
    keys.world.run(for: .seconds(1))
    keys.grant(.attendee, to: 1)
    let media = keys.received()
    #expect(media.frames == 0 && media.audio == 0)
  }

  @Test func aPromotionDoesNotShareTheScreen() throws {
    var keys = try call(.attendee)
    keys.world.offer(1, of: .screen, by: 1)
    keys.world.run(for: .seconds(1))
    keys.grant(.presenter, to: 1)
    keys.world.run(for: .seconds(2))
    #expect(held(keys) == [[.share]])
    #expect(keys.world.hosts[0].shownStreams[.screen] ?? 0 == 0)
    let seen = keys.world.hosts[0].node.member(keys.world.id(1), of: keys.channel)
    #expect(seen?.flags.contains(.sharing) == false)
    keys.world.call(1) { $0.setMuted(share: false, at: $1) }
    keys.world.run(for: .seconds(2))
    #expect(keys.world.hosts[0].shownStreams[.screen] ?? 0 > 0)
  }

  /// The time left, in seconds, each time that host 1 hears of the end of its role.
  private func announced(_ keys: KeyWorld) -> [UInt64] {
    keys.world.hosts[1].events.compactMap {
      if case .channel(.ownRoleEnds(let seconds, _)) = $0 { seconds } else { nil }
    }
  }

  @Test func theEndOfARoleIsAnnounced() throws {
    var keys = try call(.attendee)
    keys.grant(.attendee, to: 1, expiring: 320)
    keys.world.run(for: .seconds(10))
    #expect(announced(keys) == [])
    keys.world.run(for: .seconds(290))
    #expect(announced(keys) == [300, 30])
    keys.world.run(for: .seconds(30))
    #expect(announced(keys) == [300, 30] && keys.refusals(of: 1) == [.expired])
    #expect(keys.world.activeCall(1, in: keys.channel) == nil)
  }

  @Test func aShortRoleIsAnnouncedAtOnceAndALongerOneTakesItBack() throws {
    var keys = try call(.attendee)
    keys.grant(.attendee, to: 1, expiring: 100)
    keys.world.run(for: .seconds(2))
    #expect(announced(keys).count == 1 && (announced(keys).first ?? 0) > 90)
    keys.grant(.attendee, to: 1)
    keys.world.run(for: .seconds(110))
    #expect(announced(keys).count == 1 && keys.refusals(of: 1) == [])
  }

  /// It need not meet anyone to know of it, and then hears nothing new of others.
  @Test func aRemovedMemberThatRestartsAloneKnows() throws {
    var keys = try KeyWorld(3, joining: [0, 1, 2])
    try keys.revoke(2)
    keys.world.run(for: .seconds(3))
    #expect(keys.refusals(of: 2) == [.removed])
    let stored = keys.world.hosts[2].node.entries(of: keys.channel).map(\.bytes)
    keys.world.passes = { _, _, _ in false }
    keys.world.restart(2)
    keys.world.hosts[2].clear()
    keys.join(2, entries: stored)
    #expect(keys.refusals(of: 2) == [.removed])
    keys.world.passes = { _, _, _ in true }
    keys.world.run(for: .seconds(50))
    #expect(keys.refusals(of: 2) == [.removed])
    #expect(keys.contradictions() == [])
  }
}
