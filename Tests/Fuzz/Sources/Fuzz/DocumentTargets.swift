import MusterBase
import MusterChannel
import MusterCrypto
import MusterDiscovery
import MusterWire

/// A document, fed with valid, altered and invented entries.
///
/// Promises: only entries signed by their author count; the result is independent of
/// order and repetition; no entry of a quarantined author stays; the owner is never quarantined.
enum DocumentTarget {
  static func run(_ bytes: [UInt8]) {
    var program = Program(bytes)
    let exempt = program.bit() ? Cast.owner.id : nil
    var scribe = Scribe(
      channel: Cast.key.channelID, authors: [Cast.own, Cast.other, Cast.third, Cast.owner])
    var document = Document(channel: scribe.channel, exempt: exempt)
    while !program.isAtEnd {
      switch program.u8() % 8 {
      case 0:
        if let entry = try? SignedEntry.verified(program.bytes(), in: scribe.channel) {
          _ = document.insert(entry)
        }
      case 1:
        let entry = scribe.entry(&program)
        check(!accepts(altered(entry, &program), in: scribe.channel), alone)
      case 2:
        let entry = scribe.entry(&program)
        check(!accepts(entry.bytes, in: Cast.genesis.channelID), alone)
      default:
        let entry = scribe.entry(&program)
        check(accepts(entry.bytes, in: scribe.channel), "a good signature is good")
        _ = document.insert(entry)
        let again = document.insert(entry)
        check(again == .known || again == .superseded || again == .refused, "twice is once")
      }
    }
    verify(document, exempt: exempt)
    compare(document, scribe, exempt: exempt)
  }

  private static let alone = "an entry is what its author signed, where it signed it"

  private static func accepts(_ bytes: [UInt8], in channel: ChannelID) -> Bool {
    (try? SignedEntry.verified(bytes, in: channel)) != nil
  }

  private static func altered(_ entry: SignedEntry, _ program: inout Program) -> [UInt8] {
    var bytes = entry.bytes
    bytes[Int(program.u16()) % bytes.count] ^= 1 << (program.u8() & 7)
    return bytes
  }

  private static func verify(_ document: Document, exempt: NodeID?) {
    check(document.digest.count == UInt32(document.count), "a digest counts what there is")
    check(document.quarantined.allSatisfy { $0 != exempt }, "the owner's word stands")
    for kind in EntryBody.Kind.allCases {
      let entries = document.all(kind)
      for entry in entries {
        check(
          kind == .redemption || !document.quarantined.contains(entry.entry.author),
          "nothing of a fenced author stays but a redemption")
        check(document.entry(entry.id.prefix).contains(entry), "what is kept is found")
      }
      switch kind {
      case .presence, .neighbourReport, .redemption, .joining: break
      default: check(entries == entries.sorted(), "the order is the order")
      }
    }
  }

  /// All insertions in reverse order and each twice. An entry and its altered copy count as
  /// the same.
  private static func compare(_ document: Document, _ scribe: Scribe, exempt: NodeID?) {
    var forwards = document
    for entry in scribe.written { _ = forwards.insert(entry) }
    var backwards = Document(channel: scribe.channel, exempt: exempt)
    for entry in scribe.written.reversed() {
      _ = backwards.insert(entry)
      _ = backwards.insert(entry)
    }
    check(forwards.digest == backwards.digest, "the order of arrival does not matter")
    check(forwards.quarantined == backwards.quarantined, "nor for who is fenced")
  }
}

/// The gossip of a node with hostile neighbours.
///
/// Promises: it answers only its neighbours, with messages that fit into a datagram; a tick
/// performs all work that is due; unsigned entries are rejected; and finally a new member still
/// learns all entries.
struct GossipTarget {
  private var gossip = Gossip(
    channel: Cast.key.channelID, own: Cast.own.id, exempt: nil, seed: 1)
  private var scribe = Scribe(
    channel: Cast.key.channelID, authors: [Cast.other, Cast.third, Cast.owner])
  /// Sequence numbers of this node, which never equivocates.
  private var sequence: UInt64 = 0
  private var now = Instant(nanoseconds: 1_000_000_000)
  private var neighbours: [NodeID] = []

  static func run(_ bytes: [UInt8]) {
    var program = Program(bytes)
    var target = GossipTarget()
    target.meet(Cast.other.id)
    while !program.isAtEnd { target.step(&program) }
    target.reportToANewcomer()
  }

  private mutating func step(_ program: inout Program) {
    let peer = program.bit() ? Cast.other.id : Cast.third.id
    switch program.u8() % 16 {
    case 0:
      now = now + program.duration()
      perform(gossip.tick(at: now))
      if let deadline = gossip.deadline {
        check(deadline > now, "a tick does all that was due")
      }
    case 1: meet(peer)
    case 2:
      gossip.linkDown(peer)
      neighbours.removeAll { $0 == peer }
    case 3:
      let payload = [PayloadKind.controlByte] + program.bytes()
      for message in (try? Control.decode(payload)) ?? [] { receive(message, from: peer) }
    case 4: receive(.entry(program.bytes()), from: peer)
    case 5: receiveAltered(scribe.entry(&program), &program, from: peer)
    case 6: receive(.entriesReceived(ids(&program)), from: peer)
    case 7: receive(.want(ids(&program)), from: peer)
    case 8:
      let sum = program.bit() ? gossip.document.digest.sum : .zero
      receive(.digest(DocumentDigest(count: UInt32(program.u8()), sum: sum)), from: peer)
    case 9, 10: receive(.ranges(ranges(&program)), from: peer)
    case 11: broadcast(program.bytes())
    default: receive(.entry(scribe.entry(&program).bytes), from: peer)
    }
  }

  private mutating func meet(_ peer: NodeID) {
    if !neighbours.contains(peer) { neighbours.append(peer) }
    perform(gossip.linkUp(peer, at: now))
  }

  private mutating func receive(_ message: Control, from peer: NodeID) {
    perform(gossip.receive(message, from: peer, at: now))
  }

  private mutating func receiveAltered(
    _ entry: SignedEntry, _ program: inout Program, from peer: NodeID
  ) {
    var bytes = entry.bytes
    bytes[Int(program.u16()) % bytes.count] ^= 1 << (program.u8() & 7)
    let before = gossip.document.digest
    receive(.entry(bytes), from: peer)
    check(gossip.document.digest == before, "what was not signed is not taken")
  }

  private mutating func broadcast(_ text: [UInt8]) {
    guard sequence < UInt64(Scribe.limit) else { return }
    sequence += 1
    let message = Message(sentAt: 0, after: [], to: nil, content: text)
    let entry = Entry(
      author: Cast.own.id, sequence: sequence, lamport: gossip.document.lamport + 1,
      body: .message(message))
    perform(
      gossip.broadcast(SignedEntry.sign(entry, by: Cast.own, in: scribe.channel), at: now))
  }

  private func ids(_ program: inout Program) -> [UInt64] {
    (0..<program.below(Control.idLimit + 1)).map { _ in scribe.prefix(&program) }
  }

  private func ranges(_ program: inout Program) -> [RangeSummary] {
    (0..<program.below(Control.rangeLimit + 1)).map { _ in
      let depth = min(program.u8() & 0x3F, RangeSummary.depthLimit)
      let prefix = scribe.prefix(&program)
      return RangeSummary(
        depth: depth, prefix: prefix,
        content: program.bit()
          ? .fingerprint([UInt8](repeating: program.u8(), count: RangeSummary.fingerprintBytes))
          : .ids(Array(ids(&program).prefix(RangeSummary.idLimit))))
    }
  }

  private func perform(_ outputs: [Gossip.Output]) {
    for output in outputs {
      guard case .send(let message, to: let peer) = output else { continue }
      check(neighbours.contains(peer), "only neighbours are told")
      check(fits(message), "a datagram fits")
    }
  }

  // MARK: The newcomer

  /// The limit in seconds of virtual time; without loss, anti-entropy needs a few seconds.
  private static let patience = 30

  private mutating func reportToANewcomer() {
    for peer in neighbours { gossip.linkDown(peer) }
    var newcomer = Gossip(
      channel: Cast.key.channelID, own: Cast.newcomer.id, exempt: nil, seed: 2)
    var here = gossip.linkUp(Cast.newcomer.id, at: now)
    var there = newcomer.linkUp(Cast.own.id, at: now)
    let step = Duration.milliseconds(20)
    for _ in 0..<50 * Self.patience where newcomer.document.digest != gossip.document.digest {
      now = now + step
      let (toThere, toHere) = (here, there)
      here = []
      there = []
      for case .send(let message, to: Cast.newcomer.id) in toThere {
        there += newcomer.receive(message, from: Cast.own.id, at: now)
      }
      for case .send(let message, to: Cast.own.id) in toHere {
        here += gossip.receive(message, from: Cast.newcomer.id, at: now)
      }
      here += gossip.tick(at: now)
      there += newcomer.tick(at: now)
    }
    check(newcomer.document.digest == gossip.document.digest, "a newcomer learns all there is")
  }
}

/// Whether a message fits into a datagram with the link's 29 bytes of header and tag.
func fits(_ message: Control) -> Bool {
  Control.encode([message]).count + 29 <= Limits.datagramBytes
}
