import MusterBase
import MusterChannel
import MusterCore
import MusterCrypto
import MusterWire
import Testing

struct KeyTests {
  @Test func aRemovalRekeysTheOthersWhoseFormerSessionsDrain() throws {
    var keys = try KeyWorld(4, joining: [0, 1, 2, 3])
    #expect([1, 2, 3].map { keys.phase(at: 0, of: $0) } == [.active, .active, .active])
    try keys.revoke(3)
    #expect(keys.phase(at: 0, of: 1) == .rekeying)
    let phases = keys.phases(at: 0, of: 1, for: .seconds(8))
    #expect(phases == [.rekeying, .draining, .active])
    #expect(keys.epochs(of: [0, 1, 2, 3]) == [1, 1, 1, 0])
    #expect([1, 2].map { keys.linksLost(by: $0) } == [[keys.world.id(3)], [keys.world.id(3)]])
    #expect(keys.contradictions() == [])
  }

  @Test func aRemovedMemberIsRefusedAndHearsWhy() throws {
    var keys = try KeyWorld(3, joining: [0, 1, 2])
    try keys.revoke(2)
    #expect(keys.phase(at: 0, of: 2) == .refused)
    let channel = keys.channel
    keys.world.call(0) { (try? $0.say("among ourselves", to: nil, in: channel, at: $1)) ?? [] }
    keys.world.run(for: .seconds(3))
    #expect(keys.messages(of: 1) == ["among ourselves"] && keys.messages(of: 2) == [])
    #expect([0, 1].map { keys.phase(at: $0, of: 2) } == [.refused, .refused])
    #expect(keys.refusals(of: 2) == [.removed])
    #expect(keys.world.hosts[2].node.members(of: keys.channel).isEmpty)
    #expect(keys.contradictions() == [])
  }

  /// Its holder could still read announcements under the key that it has.
  @Test func aRoleThatExpiresCostsItsHolderTheKey() throws {
    var keys = try KeyWorld(4, joining: [0, 1, 2, 3])
    keys.grant(.attendee, to: 2, expiring: 5)
    keys.world.run(for: .seconds(4))
    #expect(keys.epochs(of: [0, 1, 2, 3]) == [0, 0, 0, 0])
    keys.world.run(for: .seconds(4))
    #expect(keys.epochs(of: [0, 1, 2, 3]) == [1, 1, 0, 1])
    #expect(keys.expired() == [[keys.world.id(2)]] && keys.refusals(of: 2) == [.expired])
    #expect(keys.world.hosts[2].node.members(of: keys.channel).isEmpty)
    // A new run hears the same reason as before, not that it was removed.
    keys.world.restart(2)
    keys.join(2)
    keys.world.run(for: .seconds(4))
    #expect(keys.refusals(of: 2) == [.expired, .expired])
    // The role can be given again, and comes with the key.
    keys.grant(.attendee, to: 2)
    keys.world.restart(2)
    keys.join(2)
    keys.world.run(for: .seconds(25))
    #expect(keys.epochs(of: [0, 1, 2, 3]) == [1, 1, 1, 1])
    #expect(keys.contradictions() == [])
  }

  /// An owner that was away may change the key before it hears who came by its invites meanwhile.
  @Test(arguments: [false, true])
  func aKeyChangeThatRemovesNobodyLeavesInvitesValid(isOwnerAway: Bool) throws {
    var keys = try KeyWorld(4, joining: [0, 1, 2], without: [3])
    let credential = try keys.invite(.presenter).credential
    keys.world.run(for: .seconds(1))
    keys.grant(.attendee, to: 2, expiring: 3)
    keys.world.run(for: .seconds(1))
    if isOwnerAway {
      keys.world.passes = { from, to, _ in from != 0 && to != 0 }
      keys.join(3, credential: credential)
    }
    keys.world.run(for: .seconds(10))
    #expect(keys.epochs(of: [0]) == [1])
    if !isOwnerAway { keys.join(3, credential: credential) }
    keys.world.passes = { _, _, _ in true }
    keys.world.run(for: .seconds(25))
    #expect(keys.epochs(of: [0, 1, 2, 3]) == [1, 1, 0, 1])
    for index in [0, 1] {
      let seen = keys.world.hosts[index].node.member(keys.world.id(3), of: keys.channel)
      #expect(seen?.role == .presenter)
    }
    #expect(keys.refusals(of: 3) == [] && keys.contradictions() == [])
  }

  /// It has lost its disk, and writes before it hears of its removal.
  @Test func aMemberThatComesBackIsHeardAtOnce() throws {
    var keys = try KeyWorld(3, joining: [0, 1, 2])
    let channel = keys.channel
    for text in ["one", "two", "three"] {
      keys.world.call(1) { (try? $0.say(text, to: nil, in: channel, at: $1)) ?? [] }
    }
    keys.world.run(for: .seconds(1))
    try keys.revoke(2)
    let invite = try keys.invite(.presenter)
    keys.world.run(for: .seconds(1))
    keys.world.restart(2)
    keys.join(2, credential: invite.credential, key: invite.key)
    keys.world.call(2) { (try? $0.say("back", to: nil, in: channel, at: $1)) ?? [] }
    keys.world.run(for: .seconds(6))
    #expect([0, 1].map { keys.messages(of: $0).filter { $0 == "back" } } == [["back"], ["back"]])
    #expect(keys.contradictions() == [])
  }

  /// Members with a newer key than the backup's would not find it any more.
  @Test func aCreatorFromAnOldBackupMeetsAMemberBeforeItChangesTheKey() throws {
    var keys = try KeyWorld(4, joining: [0, 1, 2, 3])
    keys.grant(.attendee, to: 3, expiring: 5)
    keys.world.run(for: .seconds(1))
    let channel = keys.channel
    let backup = keys.world.hosts[0].node.entries(of: channel).map(\.bytes)
    try keys.revoke(2)
    keys.world.run(for: .seconds(1))
    keys.world.passes = { from, to, _ in from != 0 && to != 0 }
    keys.world.restart(0)
    keys.join(0, entries: backup, isRestored: true)
    keys.world.run(for: .seconds(10))
    let member = keys.world.id(1)
    #expect(throws: CommandRefusal.restored) {
      try keys.world.hosts[0].node.revoke(member, in: channel, at: keys.world.now)
    }
    #expect(keys.epochs(of: [0, 1]) == [0, 1])
    keys.world.passes = { _, _, _ in true }
    keys.world.run(for: .seconds(25))
    // It has the newest key, and has made the change for the role that expired meanwhile.
    #expect(keys.epochs(of: [0, 1]) == [2, 2] && keys.expired() == [[keys.world.id(3)]])
    #expect(keys.world.hosts[0].node.member(member, of: channel) != nil)
    #expect(keys.contradictions() == [])
  }

  /// A removal changes the key as well.
  @Test func aKeyChangeCoversTheRolesThatHaveExpired() throws {
    var keys = try KeyWorld(5, joining: [0, 1, 2, 3])
    keys.grant(.attendee, to: 1, expiring: 2)
    keys.world.run(for: .seconds(5))
    keys.grant(.attendee, to: 2, expiring: 2)
    keys.world.run(for: .seconds(5))
    try keys.revoke(3)
    keys.world.run(for: .seconds(5))
    let seconds = keys.world.wallMilliseconds / 1000
    let rights = keys.world.hosts[0].node.rights(in: keys.channel)
    #expect(rights?.newlyExpiredMembers(at: seconds) == [] && keys.epochs(of: [0]) == [2])
    #expect(keys.expired() == [[keys.world.id(1)]])
    #expect(keys.refusals(of: 2) == [.expired] && keys.refusals(of: 3) == [.removed])
    #expect(keys.contradictions() == [])
  }

  /// A refusal is remembered for one run of the peer only, since a new run may not know of it.
  @Test func aRemovedMemberThatRestartsHearsWhyAtOnce() throws {
    var keys = try KeyWorld(3, joining: [0, 1, 2])
    try keys.revoke(2)
    keys.world.run(for: .seconds(3))
    keys.world.restart(2)
    keys.join(2)
    keys.world.run(for: .seconds(3))
    #expect(keys.refusals(of: 2) == [.removed, .removed])
    #expect(keys.epochs(of: [0, 2]) == [1, 0])
    #expect(keys.contradictions() == [])
  }

  @Test func aMemberThatWasAwayGetsTheNewKey() throws {
    var keys = try KeyWorld(4, joining: [0, 1, 2])
    try keys.revoke(2)
    keys.world.run(for: .seconds(6))
    keys.join(3)
    let phases = keys.phases(at: 0, of: 3, for: .seconds(12))
    #expect(phases.contains(.restricted) && phases.last == .active, "\(phases)")
    #expect(keys.epochs(of: [0, 1, 3]) == [1, 1, 1])
    #expect(keys.refusals(of: 3) == [])
    #expect(keys.phase(at: 3, of: 1) == .active)
    #expect(keys.contradictions() == [])
  }

  @Test func aJoinerThatWasRemovedMeanwhileGetsTheReasonAndNoKey() throws {
    var keys = try KeyWorld(3, joining: [0, 1])
    try keys.revoke(2)
    keys.world.run(for: .seconds(6))
    keys.join(2)
    let phases = keys.phases(at: 0, of: 2, for: .seconds(60))
    // Between two attempts, the refusal keeps both from connecting for 20 s.
    let attempts = phases.filter { $0 == .restricted }.count
    #expect((1...3).contains(attempts), "\(phases)")
    let isInUse = phases.contains { [.active, .rekeying, .draining].contains($0) }
    #expect(!isInUse, "\(phases)")
    #expect(keys.epochs(of: [0, 2]) == [1, 0])
    #expect(keys.refusals(of: 2) == [.removed])
    #expect(keys.world.hosts[0].node.member(keys.world.id(2), of: keys.channel) == nil)
    #expect(keys.contradictions() == [])
  }

  /// The key is in every invite, so it does not make its holder a member.
  @Test func aHolderOfTheKeyWithoutARoleGetsNothing() throws {
    var keys = try KeyWorld(3, joining: [0, 1], without: [2])
    let channel = keys.channel
    keys.world.call(0) { (try? $0.say("among ourselves", to: nil, in: channel, at: $1)) ?? [] }
    keys.world.run(for: .seconds(1))
    keys.join(2)
    let phases = keys.phases(at: 0, of: 2, for: .seconds(15))
    #expect(phases.suffix(2) == [.restricted, .refused], "\(phases)")
    #expect(phases.filter { $0 == .restricted }.count == 1, "\(phases)")
    #expect(keys.refusals(of: 2) == [.noGrant])
    #expect(keys.messages(of: 1) == ["among ourselves"] && keys.messages(of: 2) == [])
    #expect(keys.world.hosts[2].node.members(of: channel).isEmpty)
    #expect(keys.world.hosts[0].node.member(keys.world.id(2), of: channel) == nil)
    #expect(keys.contradictions() == [])
  }

  /// Its session is used as soon as the owner appoints the peer.
  @Test func aRestrictedSessionComesIntoUseWithARole() throws {
    var keys = try KeyWorld(2, joining: [0], without: [1])
    keys.join(1)
    while keys.phase(at: 0, of: 1) != .restricted { keys.world.run(for: .milliseconds(5)) }
    keys.grant(.attendee, to: 1)
    let phases = keys.phases(at: 0, of: 1, for: .seconds(2))
    #expect(phases == [.restricted, .active])
    #expect(keys.phase(at: 1, of: 0) == .active)
    #expect(keys.refusals(of: 1) == [] && keys.contradictions() == [])
  }

  /// Holders of the key alone do not take the room for links with members.
  @Test func restrictedSessionsAreLimited() throws {
    let outsiders = Array(2..<40)
    var keys = try KeyWorld(40, joining: [0], without: outsiders)
    // The outsiders ask the owner, and not each other.
    keys.world.passes = { from, to, _ in from <= 1 || to == 0 }
    for index in outsiders { keys.join(index) }
    var most = 0
    for _ in 0..<30 {
      keys.world.run(for: .milliseconds(100))
      most = max(most, outsiders.filter { keys.phase(at: 0, of: $0) == .restricted }.count)
    }
    #expect(most == 32)
    keys.join(1)
    let phases = keys.phases(at: 0, of: 1, for: .seconds(4))
    #expect(phases.last == .active, "\(phases)")
    keys.world.run(for: .seconds(6))
    #expect(!outsiders.contains { keys.phase(at: 0, of: $0) == .active })
    #expect(keys.contradictions() == [])
  }

  @Test func aHandshakeWithoutAnswerIsConnecting() throws {
    var keys = try KeyWorld(2, joining: [0])
    keys.world.passes = { _, _, kind in kind != .handshakeResponse }
    keys.join(1)
    keys.world.run(for: .seconds(1))
    #expect([keys.phase(at: 0, of: 1), keys.phase(at: 1, of: 0)].contains(.connecting))
    keys.world.passes = { _, _, _ in true }
    keys.world.run(for: .seconds(6))
    #expect([keys.phase(at: 0, of: 1), keys.phase(at: 1, of: 0)] == [.active, .active])
    #expect(keys.contradictions() == [])
  }

  /// The failure detector gives up before the session ends, and a peer that only moved or slept
  /// needs no handshake.
  @Test func aSilentPeerIsSuspendedAndComesBackWithItsSession() throws {
    var keys = try KeyWorld(2, joining: [0, 1])
    keys.world.passes = { _, _, _ in false }
    let gone = keys.phases(at: 0, of: 1, for: .seconds(8))
    #expect(gone == [.active, .suspended])
    keys.world.passes = { _, _, kind in kind != .handshakeInitiation }
    let back = keys.phases(at: 0, of: 1, for: .seconds(6))
    #expect(back == [.suspended, .active])
    #expect(keys.linksLost(by: 0) == [keys.world.id(1)])
    #expect(keys.contradictions() == [])
  }
}
