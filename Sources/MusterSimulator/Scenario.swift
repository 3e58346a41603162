import MusterBase
import MusterWire

/// The kind of channel that a run simulates.
public enum ChannelKind: String, CaseIterable, Sendable {
  /// Anyone who knows the name may join and send.
  case open
  /// The first node owns the channel and gives all other nodes their roles.
  case created
}

/// The parameters of a run, drawn from the seed before the run begins.
struct Scenario: Sendable {
  let count: Int
  let seconds: Int
  let shape: NetworkShape
  let kind: ChannelKind
  let settings: ChannelSettings
  /// Whether nodes send video and audio; most runs test the channel alone.
  let hasMedia: Bool
  let usesBroadcast: Bool
  let usesPeers: Bool
  /// The initial roles in a created channel, by index, and whether the owner grants them directly;
  /// nodes without a direct grant join with invites.
  let roles: [Role]
  let isGranted: [Bool]
  /// The index of a second owner, which keeps that role; nil for none.
  let coOwner: Int?
  /// The index of a patched node that ignores its own role; nil for none.
  let lawless: Int?
  /// The index of the node whose initial role expires during the fault phase; nil for none.
  let expiring: Int?
  /// The number of members that the owner removes.
  let removals: Int

  static let fewestNodes = 3
  static let mostNodes = 17
  static let shortRun = 26
  /// The length of a long run in seconds, sufficient for a hand-over during the fault phase.
  static let longRun = 50

  init(_ options: SimulationOptions, clocksAreRight: Bool, _ prng: inout PRNG) {
    // Small networks are drawn most often, because the cost of a run grows quadratically with the
    // number of nodes.
    let spread = Self.mostNodes - Self.fewestNodes + 1
    let draws = (0..<4).map { _ in prng.below(spread) }
    let drawn = Self.fewestNodes + (draws.min() ?? 0)
    let count = min(max(options.nodes ?? drawn, 1), SimulationOptions.nodeLimit)
    self.count = count
    let isLong = prng.chance(0.15)
    seconds = max(options.seconds ?? (isLong ? Self.longRun : Self.shortRun), 2)
    let isFull = prng.chance(0.6)
    let other = prng.one(of: [NetworkShape.chain, .star, .ring, .random])
    shape = options.shape ?? (isFull ? .full : other)
    let isCreated = prng.chance(0.5)
    kind = options.channel ?? (isCreated ? .created : .open)
    let callEndsWithInitiator = prng.chance(0.25)
    let onlyPresentersSend = prng.chance(0.2)
    settings =
      kind == .open
      ? ChannelSettings()
      : ChannelSettings(
        callEndsWithInitiator: callEndsWithInitiator, onlyPresentersSend: onlyPresentersSend)
    let drawsMedia = prng.chance(0.2)
    hasMedia = options.media ?? drawsMedia
    usesPeers = prng.chance(0.4)
    let alsoBroadcasts = prng.chance(0.5)
    usesBroadcast = !usesPeers || alsoBroadcasts
    let isCreatedChannel = kind == .created
    let coOwner = prng.chance(0.2) && count > 3 && isCreatedChannel ? 1 : nil
    var roles: [Role] = []
    for index in 0..<count {
      let draw = prng.below(20)
      let role: Role = draw < 9 ? .presenter : draw < 15 ? .attendee : .consumer
      roles.append(index == 0 ? .owner : index == coOwner ? .owner : role)
    }
    self.roles = isCreatedChannel ? roles : Array(repeating: .presenter, count: count)
    isGranted = (0..<count).map { prng.chance(0.3) || $0 == coOwner }
    self.coOwner = coOwner
    let low = (0..<count).filter { roles[$0] < .presenter }
    let isLawless = prng.chance(0.4)
    let lawless = low.isEmpty ? 0 : prng.one(of: low)
    self.lawless = isLawless && isCreatedChannel && !low.isEmpty ? lawless : nil
    let removals = prng.chance(0.5) ? 1 + prng.below(2) : 0
    self.removals = isCreatedChannel && count > 2 ? removals : 0
    let expires = prng.chance(0.25)
    let expiring = 1 + prng.below(max(count - 1, 1))
    let mayExpire = clocksAreRight && isCreatedChannel && expiring < count && expiring != coOwner
    self.expiring = expires && mayExpire ? expiring : nil
  }
}
