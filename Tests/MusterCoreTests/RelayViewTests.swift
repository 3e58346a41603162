import MusterBase
import MusterCore
import MusterCrypto
import MusterLink
import MusterSimulator
import MusterWire
import Testing

/// Two members that cannot reach each other, in two channels and the calls of both, and everything
/// that the relaying member sees of their traffic.
private final class Passing {
  static let names = ["\(Marker.text) north", "\(Marker.text) south"]
  let keys = names.map { ChannelKey.fromName($0) }
  /// The two ends have the smallest and the largest id.
  static let (first, relay, last) = (0, 1, 2)

  let world: CoreWorld
  /// A copy of the relay's link engine in its final state.
  var engine: LinkEngine
  /// The datagrams it was asked to relay, by the channel of the link they arrived over.
  let datagrams: [[[UInt8]]]

  init(seed: UInt64 = 1) throws {
    var world = CoreWorld(3, seed: seed)
    world.passes = { from, to, kind in
      // Only the others discover the relay, so that it is the responder of all its handshakes.
      if to == Self.relay, kind == .announcement { return false }
      return from == Self.relay || to == Self.relay
    }
    for (name, key) in zip(Self.names, keys) { world.join(name, key) }
    world.run(for: .seconds(15))
    let eyes = world.eyes(of: Self.relay, keys)
    let isSame = eyes.isSame
    try #require(isSame, "the copy of the relay's engine has other keys than the relay")
    datagrams = try keys.map { key in
      let passed = eyes.seen.filter {
        $0.link.key == key.keyID && $0.payload.first == PayloadKind.relayByte
      }
      return try passed.map { Array(try RelayEnvelope(decoding: $0.payload).datagram) }
    }
    self.world = world
    engine = eyes.engine
  }

  var all: [[UInt8]] { datagrams.flatMap { $0 } }
}

struct RelayViewTests {
  @Test func videoAndAudioGoThroughTheRelay() throws {
    let passing = try Passing()
    let (first, last) = (Passing.first, Passing.last)
    for key in passing.keys {
      for (one, other) in [(first, last), (last, first)] {
        let relay = passing.world.relay(from: one, to: other, in: key.channelID)
        #expect(relay == passing.world.id(Passing.relay))
        let link = LinkID(channel: key.channelID, peer: passing.world.id(other))
        #expect(passing.world.hosts[one].shown[link] ?? 0 > 40)
      }
    }
    for datagrams in passing.datagrams {
      #expect(datagrams.filter { DatagramKind(of: $0) == .data }.count > 1000)
      #expect(datagrams.contains { DatagramKind(of: $0) == .handshakeInitiation })
    }
  }

  /// In each channel a member sends audio to the relay and through it, and the relay to both: all
  /// of that is marked, and what the relay forwards is not.
  @Test func envelopesAreMarkedAsFarAsTheRelay() throws {
    let passing = try Passing()
    let marked = [Passing.first, Passing.relay, Passing.last].map { index in
      passing.world.hosts[index].sent.count { $0.serviceClass == .audio }
    }
    #expect(marked[1] > 1_000)
    for count in marked {
      #expect((0.75...1.25).contains(Double(count) / Double(marked[1])), "\(marked)")
    }
  }

  @Test func relayedBytesShowNeitherNamesNorKeysNorMedia() throws {
    let passing = try Passing()
    var plaintext = PlaintextChecker()
    for position in passing.world.hosts { plaintext.add(position.node.id) }
    for key in passing.keys { plaintext.add(key: key) }
    let found = passing.all.compactMap { plaintext.sent($0) }
    #expect(found.isEmpty, "\(found.prefix(3))")
    // No eight bytes of a value derived from a channel key may appear in the datagrams.
    let derived = passing.keys.flatMap { key in
      [key.keyID.hash.bytes, key.rendezvousTag(period: 1).id.key.bytes]
        + [key.noisePSK.withUnsafeBytes { Array($0) }]
    }
    let windows = Set(passing.all.flatMap { words($0[...]) })
    for secret in derived { #expect(words(secret[...]).allSatisfy { !windows.contains($0) }) }
    for datagrams in passing.datagrams {
      #expect(chiSquare(datagrams.flatMap { sealedPart($0) }) < 400)
    }
  }

  @Test func noKeyOfTheRelayOpensWhatItPassesOn() throws {
    let passing = try Passing()
    let (world, now) = (passing.world, passing.world.now)
    let before = passing.engine.counters
    for datagram in passing.all {
      for position in [Passing.first, Passing.last] {
        let source = world.hosts[position].address
        #expect(passing.engine.receive(datagram, from: .direct(source), at: now).isEmpty)
      }
    }
    #expect(passing.engine.counters.unknownIndex > before.unknownIndex)
    // The whole node ignores the datagrams as well: it sends nothing and reports nothing.
    let relay = world.hosts[Passing.relay]
    for datagram in passing.all.prefix(300) {
      let outputs = relay.node.receive(datagram, from: world.hosts[Passing.first].address, at: now)
      #expect(outputs.isEmpty)
    }
    let keys = try relayKeys(passing)
    #expect(keys.count == 21)
    // Each key of the relay is tried with each AEAD construction of the protocol.
    let sample = passing.all.filter { DatagramKind(of: $0) == .data }.prefix(500)
    for datagram in sample {
      let header = Array(datagram.prefix(13))
      let counter = Array(header.suffix(8).reversed())
      for key in keys {
        let opened = AEAD.open(
          datagram.dropFirst(13), nonce: [0, 0, 0, 0] + counter, associatedData: header, key: key,
          with: .chaChaPoly)
        #expect(opened == nil)
      }
      for key in passing.keys {
        #expect(key.openAnnouncement(datagram.dropFirst(1), kind: header[0]) == nil)
        #expect(key.openAnnouncement(datagram.dropFirst(13), kind: header[0]) == nil)
      }
    }
  }

  @Test func flowsOfTwoChannelsDifferInNothingButChance() throws {
    let passing = try Passing()
    let flows = passing.datagrams.map { $0.filter { DatagramKind(of: $0) == .data } }
    // The form is the same: a kind, an index for each direction, counters that grow by one.
    for flow in flows {
      let indices = Set(flow.map { Array($0[1..<5]) })
      #expect(indices.count == 2, "\(indices.count) indices")
      for index in indices {
        let counters = flow.filter { Array($0[1..<5]) == index }.map { number($0[5..<13]) }
        let isGapless = counters.sorted() == Array(0..<UInt64(counters.count))
        #expect(isGapless, "\(counters.count) datagrams")
      }
    }
    // The flows have nothing in common: their XOR is as random as each of them.
    let sealed = flows.map { $0.flatMap { $0.dropFirst(13) } }
    #expect(chiSquare(zip(sealed[0], sealed[1]).map { $0 ^ $1 }) < 400)
    let common = Set(flows[0].flatMap { words($0.dropFirst(13)) })
      .intersection(flows[1].flatMap { words($0.dropFirst(13)) })
    #expect(common.isEmpty)
  }

  /// Two runs have the same members, names and keys: whatever depends on these alone would appear
  /// in both.
  @Test func nothingOfAFlowComesBackInAnotherRun() throws {
    let runs = try [Passing(seed: 1), Passing(seed: 2)]
    for position in runs[0].world.hosts.indices {
      #expect(runs[0].world.id(position) == runs[1].world.id(position))
    }
    let seen = runs.map { run in Set(run.all.flatMap { words(unsteadyPart($0)) }) }
    #expect(seen[0].count > 100_000)
    let common = seen[0].intersection(seen[1])
    #expect(common.isEmpty, "\(common.count) of \(seen[0].count)")
  }

  /// All keys that the relay has or can derive, from its identity and as a member of both channels.
  private func relayKeys(_ passing: Passing) throws -> [SecretBytes] {
    let own = passing.world.hosts[Passing.relay].node.identity
    var keys = [own.linkKeys.secret]
    let ends = try [Passing.first, Passing.last].map {
      try #require(passing.world.id($0).x25519PublicKey)
    }
    for end in ends {
      let shared = try #require(X25519.shared(own.linkKeys.secret, end))
      keys += [shared, Blake2b.derive("muster/1 noise psk", from: shared, in: .heap)]
    }
    for key in passing.keys {
      let secret = SecretBytes(key.withSecret { Array($0) })
      keys += [secret, key.noisePSK]
      keys += ["muster/1 announce key", "muster/1 channel id"].map {
        Blake2b.derive($0, from: secret, in: .heap)
      }
      for end in ends {
        keys += [.initiation, .response].map { key.handshakeKey($0, responder: end) }
      }
    }
    return keys
  }
}

/// The datagram without its predictable fields: kind, indices, counter, and a second MAC of zeros.
private func unsteadyPart(_ datagram: [UInt8]) -> ArraySlice<UInt8> {
  switch DatagramKind(of: datagram) {
  case .handshakeInitiation: datagram[5...].dropLast(16)
  case .handshakeResponse: datagram[9...].dropLast(16)
  default: datagram.dropFirst(13)
  }
}

private func sealedPart(_ datagram: [UInt8]) -> ArraySlice<UInt8> {
  DatagramKind(of: datagram) == .data ? datagram.dropFirst(13) : []
}

/// All runs of eight consecutive bytes.
private func words(_ bytes: ArraySlice<UInt8>) -> [UInt64] {
  var word: UInt64 = 0
  var words: [UInt64] = []
  for (position, byte) in bytes.enumerated() {
    word = word << 8 | UInt64(byte)
    if position >= 7 { words.append(word) }
  }
  return words
}

private func number(_ bytes: ArraySlice<UInt8>) -> UInt64 {
  bytes.reduce(0) { $0 << 8 | UInt64($1) }
}

/// The chi-squared statistic of the bytes: about 255 when random, above 400 less than once in 10^7.
private func chiSquare(_ bytes: [UInt8]) -> Double {
  var counts = [Double](repeating: 0, count: 256)
  for byte in bytes { counts[Int(byte)] += 1 }
  let expected = Double(bytes.count) / 256
  return counts.reduce(0) { $0 + ($1 - expected) * ($1 - expected) / expected }
}
