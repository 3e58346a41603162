import MusterBase
import MusterChannel
import MusterCore
import MusterCrypto
import MusterWire
import Testing

/// A created channel of five nodes: an owner, two members with direct grants, and two nodes that
/// hold the same invite for one person. A partition may separate one member and one holder from the
/// others.
private struct InviteWorld {
  static let owner = 0
  static let members = [1, 2]
  static let holders = [3, 4]

  var world: CoreWorld
  private let genesis: SignedGenesis
  private let key = ChannelKey.fromName("invites")
  private var credential: InviteCredential?
  private var entries: [[UInt8]] = []

  var channel: ChannelID { genesis.channelID }

  init(seed: UInt64) {
    world = CoreWorld(5, seed: seed)
    world.speaks = { _ in false }
    let owner = world.hosts[Self.owner].node.identity
    genesis = SignedGenesis.sign(
      Genesis(
        owner: owner.id, nonce: [UInt8](repeating: 9, count: Genesis.nonceBytes),
        createdAt: 1000, settings: ChannelSettings(), name: "invites"),
      by: owner)
    found(by: owner, seed)
  }

  /// Grants the members their roles and makes the invite, before any node runs.
  private mutating func found(by owner: Identity, _ seed: UInt64) {
    var office = Node(identity: owner, entropy: .seeded(seed &* 7), seed: seed)
    office.setWallClock(millisecondsSince1970: 1_700_000_000_000, at: world.now)
    var outputs = office.join(setup(), call: false, at: world.now)
    for index in Self.members {
      let made = try? office.grant(
        .presenter, to: world.id(index), expiresAt: 0, in: channel, at: world.now)
      outputs += made ?? []
    }
    let made = try? office.makeInvite(
      role: .attendee, expiresAt: 0, uses: 1, peers: [], rendezvous: [], in: channel, at: world.now)
    outputs += made?.outputs ?? []
    for case .commit(let changes, _) in outputs {
      for case .entry(let bytes, _) in changes { entries.append(bytes) }
    }
    if let bytes = made?.invite.grant, let seed = made?.invite.oneTimeSeed,
      let secret = Identity(seed: seed)
    {
      credential = InviteCredential(grant: bytes, secret: secret)
    }
  }

  private func setup(_ entries: [[UInt8]] = [], _ credential: InviteCredential? = nil)
    -> ChannelSetup
  {
    ChannelSetup(
      name: "invites", keys: [EpochKey(number: 0, key: key)], genesis: genesis, entries: entries,
      credential: credential)
  }

  /// Lets a member enter the channel that knows of no role but its own.
  mutating func joinKnowingItself(_ index: Int) {
    let member = world.id(index)
    let own = entries.filter { bytes in
      guard case .grant(let grant)? = try? SignedEntry.verified(bytes, in: channel).entry.body
      else { return false }
      return grant.subject == member
    }
    let setup = setup(own)
    world.call(index) { $0.join(setup, call: false, at: $1) }
  }

  /// Lets a node enter the channel: the owner and the members with what they know of it, a holder
  /// with the invite.
  mutating func join(_ index: Int) {
    let isHolder = Self.holders.contains(index)
    let setup = isHolder ? setup([], credential) : setup(entries)
    world.call(index) { $0.join(setup, call: false, at: $1) }
  }

  func refusals(of index: Int) -> [Refusal] {
    world.hosts[index].events.compactMap {
      if case .channel(.refused(let reason)) = $0 { reason } else { nil }
    }
  }

  /// Separates these nodes from all others.
  mutating func part(_ side: [Int]) {
    world.passes = { from, to, _ in side.contains(from) == side.contains(to) }
  }

  mutating func heal() { world.passes = { _, _, _ in true } }

  /// The role of one node as another one knows it.
  func role(of index: Int, at other: Int) -> Role? {
    world.hosts[other].node.rights(in: channel)?.role(of: world.id(index), at: 1_700_000_000)
  }

  /// The holders that have a role as a node knows it.
  func admitted(at other: Int) -> [Int] {
    Self.holders.filter { role(of: $0, at: other) == .attendee }
  }

  /// Runs until a node has links with all members.
  mutating func link(_ index: Int) -> Bool {
    for _ in 0..<200 {
      let seen = world.hosts[index].node.statistics(at: world.now).map(\.link.peer)
      let others = Self.members.filter { $0 != index }
      if others.allSatisfy({ seen.contains(world.id($0)) }) { return true }
      world.run(for: .milliseconds(100))
    }
    return false
  }
}

/// Invites that several people hold.
struct InviteTests {
  /// Two people come by the same invite on the two sides of a partition, while the owner is away.
  @Test(arguments: 1...10 as ClosedRange<UInt64>)
  func theOwnerSettlesWhoHasCome(seed: UInt64) throws {
    var invites = InviteWorld(seed: seed)
    invites.part([2, 4])
    for index in InviteWorld.members + InviteWorld.holders { invites.join(index) }
    invites.world.run(for: .seconds(5))
    // People can meet without the owner.
    #expect(invites.admitted(at: 1) == [3], "seed \(seed)")
    #expect(invites.admitted(at: 2) == [4], "seed \(seed)")
    invites.heal()
    let hasMet = invites.link(1)
    try #require(hasMet, "seed \(seed)")
    invites.world.run(for: .seconds(2))
    for index in InviteWorld.members + InviteWorld.holders {
      #expect(invites.admitted(at: index) == InviteWorld.holders, "seed \(seed), node \(index)")
    }

    invites.join(InviteWorld.owner)
    let ownerHasMet = invites.link(InviteWorld.owner)
    try #require(ownerHasMet, "seed \(seed)")
    invites.world.run(for: .seconds(2))
    let stayed = invites.admitted(at: InviteWorld.owner)
    #expect(stayed.count == 1, "seed \(seed)")
    for index in InviteWorld.members + stayed {
      #expect(invites.admitted(at: index) == stayed, "seed \(seed), node \(index)")
    }
    let invite = invites.world.hosts[0].node.rights(in: invites.channel)?.invites(at: 0).first
    #expect(invite?.confirmed == stayed.map { invites.world.id($0) }, "seed \(seed)")
    #expect(invites.world.hosts.flatMap { $0.node.checkInvariants() } == [])
  }

  /// The owner has confirmed one of the two: whoever came on the other side does not expel it.
  @Test(arguments: 1...10 as ClosedRange<UInt64>)
  func aConfirmedMemberStays(seed: UInt64) throws {
    var invites = InviteWorld(seed: seed)
    invites.part([2, 4])
    for index in 0...4 { invites.join(index) }
    invites.world.run(for: .seconds(5))
    #expect(invites.admitted(at: 2) == [4], "seed \(seed)")
    invites.heal()
    for _ in 0..<100 {
      invites.world.run(for: .milliseconds(100))
      #expect(invites.role(of: 3, at: 1) == .attendee, "seed \(seed)")
    }
    for index in 0...3 {
      #expect(invites.admitted(at: index) == [3], "seed \(seed), node \(index)")
    }
    #expect(invites.refusals(of: 3) == [], "seed \(seed)")
  }

  /// The owner is away, and of two members one or neither knows that the other is one.
  @Test(arguments: [[1], [2], [1, 2]], [0, 0.3])
  func membersMeetWithoutKnowingEachOther(unknowing: [Int], loss: Double) {
    for seed in 1...20 as ClosedRange<UInt64> {
      var invites = InviteWorld(seed: seed)
      var prng = PRNG(seed: seed)
      // Handshakes and announcements have their own repetitions.
      invites.world.passes = { _, _, kind in kind != .data || !prng.chance(loss) }
      for index in InviteWorld.members {
        if unknowing.contains(index) {
          invites.joinKnowingItself(index)
        } else {
          invites.join(index)
        }
      }
      invites.world.run(for: .seconds(4))
      #expect(invites.role(of: 1, at: 2) == .presenter, "seed \(seed)")
      #expect(invites.role(of: 2, at: 1) == .presenter, "seed \(seed)")
      for (index, other) in [(1, 2), (2, 1)] {
        let met = invites.world.hosts[index].node.members(of: invites.channel).map(\.id)
        #expect(met.contains(invites.world.id(other)), "seed \(seed)")
        #expect(invites.refusals(of: index) == [], "seed \(seed)")
      }
    }
  }

  /// On one side of a partition the first to come stays: nobody else gets in by the same invite.
  @Test(arguments: 1...8 as ClosedRange<UInt64>)
  func aLaterHolderIsRefused(seed: UInt64) {
    var invites = InviteWorld(seed: seed)
    for index in InviteWorld.members + [3] { invites.join(index) }
    invites.world.run(for: .seconds(4))
    for index in InviteWorld.members { #expect(invites.admitted(at: index) == [3]) }
    invites.join(4)
    invites.world.run(for: .seconds(8))
    for index in InviteWorld.members + [3] { #expect(invites.admitted(at: index) == [3]) }
    let (channel, last) = (invites.channel, invites.world.id(4))
    #expect(invites.world.hosts[1].node.member(last, of: channel) == nil)
    #expect(invites.refusals(of: 4) == [.inviteUsedUp], "seed \(seed)")
    #expect(invites.world.hosts[4].node.members(of: channel).isEmpty, "seed \(seed)")
  }
}
