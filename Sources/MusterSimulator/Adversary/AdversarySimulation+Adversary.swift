import MusterBase
import MusterChannel
import MusterCore
import MusterCrypto
import MusterWire

/// The adversary's links, and what it sends and learns over them.
extension AdversarySimulation {
  /// Introduces all keys, over the links of those that have links.
  mutating func attack() {
    note("--", "the adversary comes")
    connect()
    schedule(.introduce, in: Self.introductionInterval)
    schedule(.flood, in: Self.floodInterval)
  }

  /// Introduces all keys again: before a key has a role, members ignore what it says of others.
  mutating func introduce() {
    schedule(.introduce, in: Self.introductionInterval)
    for number in peers.indices {
      for member in peers[number].linked { introduce(to: member, over: number) }
    }
  }

  /// Offers links to all members to which there are none, also after having been removed.
  private mutating func connect() {
    for number in peers.indices {
      for node in nodes {
        guard let bootID = node.process?.node.bootID,
          !peers[number].linked.contains(node.identity.id)
        else { continue }
        perform(
          peers[number].connect(
            to: node.identity.id, bootID: bootID, at: node.address, now: now),
          of: number)
      }
    }
  }

  mutating func flood() {
    schedule(.flood, in: Self.floodInterval)
    connect()
    let milliseconds = Int(Self.floodInterval.wholeNanoseconds / 1_000_000)
    let share = scenario.entriesPerSecond * milliseconds
    let count = share / 1000 + (prng.below(1000) < share % 1000 ? 1 : 0)
    for move in adversary.flood(count) {
      // Each entry goes over the links of one key; the members pass it on.
      let number = prng.below(peers.count)
      switch move {
      case .entry(let entry):
        perform(peers[number].send([.entry(entry)], at: now), of: number)
      case .question(let question): perform(peers[number].send([question], at: now), of: number)
      case .replay: replay(from: peers[number].address)
      }
    }
  }

  /// Keeps some of the datagrams that members were sent.
  mutating func record(_ arrived: Network.Delivery) {
    guard scenario.tactics.contains(.replays) else { return }
    if recordings.count < Self.recordingLimit {
      recordings.append(arrived)
    } else if prng.chance(0.1) {
      recordings[prng.below(recordings.count)] = arrived
    }
  }

  /// Sends a recorded datagram to its receiver once more.
  private mutating func replay(from address: Address) {
    guard !recordings.isEmpty else { return }
    let recorded = prng.one(of: recordings)
    bytesSent += recorded.datagram.count
    network.send(
      recorded.datagram, from: prng.chance(0.5) ? address : recorded.from, to: recorded.to, at: now)
  }

  private static let recordingLimit = 256

  /// Executes the outputs of a link end of the adversary.
  mutating func perform(_ outputs: [AdversaryPeer.Output], of number: Int) {
    for output in outputs {
      switch output {
      case .send(let datagram, let address):
        bytesSent += datagram.count
        network.send(datagram, from: peers[number].address, to: address, at: now)
      case .up(let member): introduce(to: member, over: number)
      case .entry(let bytes, let member): learn(bytes, from: member, over: number)
      case .key(let secret): learn(key: secret)
      }
    }
  }

  /// Shows the credentials of a linked key to a member, and of all keys without links.
  private mutating func introduce(to member: NodeID, over number: Int) {
    let own = adversary.keys.indices.filter { $0 == number || $0 >= peers.count }
    for index in own {
      for entry in adversary.introduction(of: index) {
        perform(peers[number].send([.entry(entry.bytes)], to: member, at: now), of: number)
      }
    }
  }

  private mutating func learn(_ bytes: [UInt8], from member: NodeID, over number: Int) {
    guard let entry = try? Entry(decoding: bytes.dropLast(Entry.signatureBytes)) else { return }
    adversary.learn(entry, SignedEntry.id(of: bytes).prefix)
    let own = peers[number].identity.id
    if !hadRole[number], !entry.isCredential(of: member), !entry.isCredential(of: own) {
      violated("access", "a key of the adversary reads what is not for it before it has a role")
    }
    guard case .message(let message) = entry.body, adversary.members.contains(entry.author),
      let removedAt, let writtenAt = promises.writtenAt(message.content),
      writtenAt - removedAt > Self.removalTime
    else { return }
    violated("access", "the adversary reads what was written after its removal")
  }

  /// Notes which keys with links have a role at a member.
  mutating func noteRoles(at index: Int) {
    guard let process = nodes[index].process else { return }
    for number in peers.indices where !hadRole[number] {
      hadRole[number] = process.node.may(.receive, peers[number].identity.id, in: channel.id)
    }
  }

  private mutating func learn(key secret: [UInt8]) {
    guard let key = ChannelKey(secret: secret) else { return }
    if removedAt != nil { violated("access", "the adversary gets the key after its removal") }
    for peer in peers { peer.learn(key) }
  }

  /// The time that the news of a removal takes to reach all members.
  private static let removalTime = Duration.seconds(1)

  mutating func tickOthers() {
    for number in peers.indices where peers[number].deadline.map({ $0 <= now }) ?? false {
      perform(peers[number].tick(at: now), of: number)
    }
  }
}

extension Entry {
  /// Whether this entry may prove to someone without a role that `member` is a member, or that the
  /// one who made it a member is an owner.
  fileprivate func isCredential(of member: NodeID) -> Bool {
    switch body {
    case .grant(let grant): grant.subject == member || grant.role == .owner
    case .redemption: author == member
    default: false
    }
  }
}
