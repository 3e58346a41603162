import MusterBase
import MusterChannel
import MusterCore
import MusterCrypto
import MusterDiscovery
import MusterWire

/// The channel that the nodes of a run join.
struct ChannelPlan: Sendable {
  let name: String
  /// The channel's genesis; nil for an open channel.
  let genesis: SignedGenesis?
  /// The key of epoch 0: random in a created channel, derived from the name in an open one.
  let key: EpochKey

  var id: ChannelID { genesis?.channelID ?? key.key.channelID }

  init(
    _ kind: ChannelKind, _ settings: ChannelSettings = ChannelSettings(), seed: UInt64,
    owner: Identity, _ prng: inout PRNG
  ) {
    name = "\(Marker.text)-room-\(seed)"
    var entropy = Entropy.seeded(prng.next())
    guard kind == .created, let secret = ChannelKey(secret: entropy.bytes(32)) else {
      genesis = nil
      key = EpochKey(number: 0, key: ChannelKey.fromName(name))
      return
    }
    key = EpochKey(number: 0, key: secret)
    genesis = SignedGenesis.sign(
      Genesis(
        owner: owner.id, nonce: entropy.bytes(Genesis.nonceBytes), createdAt: WallTime.base,
        settings: settings, name: name),
      by: owner)
  }
}

/// The wall time of the simulated world.
enum WallTime {
  /// The start of every run in seconds since 1970: 9 October 2025, 08:53:20 UTC.
  static let base: UInt64 = 1_760_000_000

  static func seconds(_ now: Instant) -> UInt64 {
    base + UInt64(clamping: now.nanoseconds / 1_000_000_000)
  }
}

/// The owner's preparations before any node runs: an invite for every other node, and direct grants
/// for some.
extension Simulation {
  mutating func found() {
    guard channel.genesis != nil else { return }
    var office = Node(
      identity: nodes[0].identity, entropy: .seeded(prng.next()), seed: prng.next())
    office.setWallClock(millisecondsSince1970: WallTime.base * 1000, at: now)
    let id = channel.id
    record(office.join(nodes[0].setup(of: channel), call: false, at: now), of: &office, at: 0)
    for index in nodes.indices.dropFirst() {
      let role = scenario.roles[index]
      let end = WallTime.seconds(.zero + (healAt - .zero) * 0.7)
      let expiresAt = index == scenario.expiring ? end : 0
      if scenario.isGranted[index] {
        let member = nodes[index].identity.id
        let outputs = try? office.grant(role, to: member, expiresAt: expiresAt, in: id, at: now)
        record(outputs ?? [], of: &office, at: 0)
      }
      nodes[index].usesInvite = !scenario.isGranted[index]
      // Some invites are shared and others serve one node: runs must cover both kinds.
      let shared = nodes[1..<index].last { other in
        scenario.roles[other.index] == role && other.index != scenario.expiring
      }?.invite
      let isShared = expiresAt == 0 && prng.chance(0.5)
      if isShared, let shared {
        nodes[index].invite = shared
      } else if let made = Self.invite(
        to: min(role, .presenter), expiresAt: expiresAt, uses: 0, from: &office, in: id,
        at: now)
      {
        nodes[index].invite = made.invite
        record(made.outputs, of: &office, at: 0)
      }
    }
  }

  /// Makes an invite as an owner's node, for a number of uses (0: any number), and returns it with
  /// the outputs to execute; nil if the node refuses. `clock` is a time of that node's boot clock.
  static func invite(
    to role: Role, expiresAt: UInt64, uses: UInt32, from node: inout Node,
    in channel: ChannelID, at clock: Instant
  ) -> (invite: SimulatedNode.HeldInvite, outputs: [Node.Output])? {
    let written = try? node.makeInvite(
      role: role, expiresAt: expiresAt, uses: uses, peers: [], rendezvous: [], in: channel,
      at: clock)
    guard let (made, outputs) = written, let bytes = made.grant, let seed = made.oneTimeSeed,
      let secret = Identity(seed: seed), let key = ChannelKey(secret: made.key),
      let entry = try? Entry(decoding: bytes.dropLast(Entry.signatureBytes)),
      case .grant(let grant) = entry.body
    else { return nil }
    let invite = SimulatedNode.HeldInvite(
      credential: InviteCredential(grant: bytes, secret: secret), grant: grant,
      order: RoleChecker.Order(lamport: entry.lamport, author: entry.author),
      key: EpochKey(number: made.epoch, key: key))
    return (invite, outputs)
  }

  /// Applies the writes in a node's outputs to its host's disk, and reports commits to the node as
  /// durable; all other outputs are ignored.
  private mutating func record(
    _ outputs: [Node.Output], of node: inout Node, at index: Int
  ) {
    var writes = NodeWrites()
    for output in outputs { writes.take(output) }
    for change in writes.allChanges {
      nodes[index].disk.apply(change)
      guard case .entry(let bytes, let id) = change,
        let entry = try? Entry(decoding: bytes.dropLast(Entry.signatureBytes))
      else { continue }
      bounds.entries += 1
      learn(entry, id, at: index, takenInAt: now, writers: writers(at: index))
    }
    for commit in writes.commits {
      record(node.finish(commit.id, isDurable: true, at: now), of: &node, at: index)
    }
  }
}
