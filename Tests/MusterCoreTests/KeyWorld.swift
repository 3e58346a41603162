import MusterBase
import MusterChannel
import MusterCore
import MusterCrypto
import MusterWire
import Testing

/// A created channel of which host 0 is the owner and the others are presenters.
struct KeyWorld {
  var world: CoreWorld
  let genesis: SignedGenesis
  /// The key that the channel began with.
  let firstKey: ChannelKey

  var channel: ChannelID { genesis.channelID }

  /// All hosts but the owner and those in `without` get a grant; only those in `joining` enter the
  /// channel.
  init(_ count: Int, joining: [Int], without: [Int] = []) throws {
    world = CoreWorld(count)
    let owner = world.hosts[0].node.identity
    genesis = SignedGenesis.sign(
      Genesis(
        owner: owner.id, nonce: [UInt8](repeating: 9, count: Genesis.nonceBytes),
        createdAt: 1000, settings: ChannelSettings(), name: "keys"),
      by: owner)
    firstKey = ChannelKey.fromName("the first key")
    for index in joining { join(index) }
    for index in 1..<count where !without.contains(index) { grant(.presenter, to: index) }
    world.run(for: .seconds(4))
  }

  /// Lets a host enter the channel with one key, by default the first, and what an earlier run has
  /// stored.
  mutating func join(
    _ index: Int, entries: [[UInt8]] = [], credential: InviteCredential? = nil,
    key: EpochKey? = nil, isRestored: Bool = false
  ) {
    var setup = ChannelSetup(
      name: "keys", keys: [key ?? EpochKey(number: 0, key: firstKey)], genesis: genesis,
      entries: entries, credential: credential)
    setup.isRestored = isRestored
    world.call(index) { $0.join(setup, call: false, at: $1) }
  }

  /// What an invite of the owner for one person contains besides the key.
  mutating func invite(_ role: Role) throws -> (credential: InviteCredential, key: EpochKey) {
    let channel = channel
    var invite: Invite?
    world.call(0) { node, now in
      let made = try? node.makeInvite(
        role: role, expiresAt: 0, uses: 1, peers: [], rendezvous: [], in: channel, at: now)
      invite = made?.invite
      return made?.outputs ?? []
    }
    let made = try #require(invite)
    let secret = try #require(made.oneTimeSeed.flatMap { Identity(seed: $0) })
    let key = EpochKey(number: made.epoch, key: try #require(ChannelKey(secret: made.key)))
    return (InviteCredential(grant: try #require(made.grant), secret: secret), key)
  }

  /// `after`: the time after which the role expires; nil for never.
  mutating func grant(_ role: Role, to index: Int, expiring after: Int? = nil) {
    let (member, channel) = (world.id(index), channel)
    let seconds = world.wallMilliseconds / 1000
    world.call(0) { node, now in
      (try? node.grant(
        role, to: member, expiresAt: after.map { seconds + UInt64($0) } ?? 0, in: channel, at: now))
        ?? []
    }
  }

  mutating func revoke(_ index: Int) throws {
    let (member, channel) = (world.id(index), channel)
    let before = world.hosts[0].node.epoch(of: channel)
    world.call(0) { node, now in (try? node.revoke(member, in: channel, at: now)) ?? [] }
    try #require(world.hosts[0].node.epoch(of: channel) == before + 1)
  }

  func phase(at index: Int, of other: Int) -> AssociationPhase? {
    let link = LinkID(channel: channel, peer: world.id(other))
    return world.hosts[index].node.associationPhases(at: world.now).first { $0.link == link }?
      .phase
  }

  /// The frames and audio packets of host 1 that the owner gets in two seconds.
  mutating func received() -> (frames: Int, audio: Int) {
    let link = LinkID(channel: channel, peer: world.id(1))
    let before = world.hosts[0].shown[link] ?? 0
    world.hosts[0].clear()
    world.run(for: .seconds(2))
    let frames = (world.hosts[0].shown[link] ?? 0) - before
    return (frames, world.hosts[0].heard[link.peer]?.count ?? 0)
  }

  /// The successive phases of an association during `duration`.
  mutating func phases(
    at index: Int, of other: Int, for duration: Duration
  ) -> [AssociationPhase?] {
    var found = [phase(at: index, of: other)]
    let end = world.now + duration
    while world.now < end {
      world.run(for: .milliseconds(5))
      let next = phase(at: index, of: other)
      if found.last != next { found.append(next) }
    }
    return found
  }

  func epochs(of indices: [Int]) -> [UInt32] {
    indices.map { world.hosts[$0].node.epoch(of: channel) }
  }

  /// The reasons for which a node was refused as a member.
  func refusals(of index: Int) -> [Refusal] {
    world.hosts[index].events.compactMap {
      if case .channel(.refused(let reason)) = $0 { reason } else { nil }
    }
  }

  /// The members whose expired roles were the owner's reasons to change the key.
  func expired() -> [[NodeID]] {
    world.hosts[0].events.compactMap {
      if case .rolesExpired(let members) = $0 { members } else { nil }
    }
  }

  func messages(of index: Int) -> [String] {
    world.hosts[index].events.compactMap {
      if case .channel(.message(let message)) = $0 { message.text } else { nil }
    }
  }

  func linksLost(by index: Int) -> [NodeID] {
    world.hosts[index].events.compactMap {
      if case .linkDown(let peer, _) = $0 { peer } else { nil }
    }
  }

  func contradictions() -> [String] { world.hosts.flatMap { $0.node.checkInvariants() } }
}
