import MusterBase
import MusterChannel
import MusterCrypto
import MusterWire
import Testing

/// New entries are pushed at once, once to each neighbour that lacks them, and no faster than the
/// neighbour acknowledges them.
struct GossipPushTests {
  private let peer = testIdentity(2).id

  private func messages(_ count: Int, by author: UInt64 = 1) -> [SignedEntry] {
    (0..<count).map {
      Entries.signed(
        author, sequence: UInt64($0), lamport: UInt64($0 + 1), Entries.message("text \($0)"))
    }
  }

  /// Lets time pass up to `end`; returns the outputs of each tick, with its time.
  private func drive(
    _ gossip: inout Gossip, until end: Instant
  ) -> [(at: Instant, out: [Gossip.Output])] {
    var log: [(at: Instant, out: [Gossip.Output])] = []
    while let due = gossip.deadline, due <= end, log.count < 10_000 {
      log.append((due, gossip.tick(at: due)))
    }
    return log
  }

  @Test func aNewNeighbourFirstGetsTheOwnPresence() throws {
    var gossip = Gossip.linked(1, to: [])
    let presence = Entries.signed(1, sequence: 1, lamport: 1, Entries.presence("one"))
    _ = gossip.broadcast(presence, at: seconds(1))
    let sends = gossip.linkUp(peer, at: seconds(2)).sends
    #expect(sends.map(\.to) == [peer, peer])
    #expect(sends.map(\.message) == [.entry(presence.bytes), .digest(gossip.document.digest)])
  }

  @Test func pushesSkipTheSourceAndNeighboursOfTheAuthor() {
    var gossip = Gossip.linked(1, to: [2, 3, 4])
    let (third, fourth) = (testIdentity(3).id, testIdentity(4).id)
    let neighbourReport = Entries.signed(
      2, sequence: 1, lamport: 1, Entries.neighbourReport([third]))
    let message = Entries.signed(2, sequence: 2, lamport: 2, Entries.message("hello"))
    for entry in [neighbourReport, message] {
      let out = gossip.receive(.entry(entry.bytes), from: peer, at: seconds(1))
      #expect(out.contains(.inserted(entry, removed: [])))
      #expect(out.entries(to: peer).isEmpty && out.entries(to: third).isEmpty)
      #expect(out.entries(to: fourth) == [entry.bytes])
    }
  }

  /// An entry received from a neighbour that is not its author is forwarded to all other
  /// neighbours.
  @Test func entriesOfDistantAuthorsGoToAllOthers() {
    var gossip = Gossip.linked(1, to: [2, 3, 4])
    let far = messages(1, by: 9)[0]
    let out = gossip.receive(.entry(far.bytes), from: peer, at: seconds(1))
    #expect(out.entries(to: peer).isEmpty)
    for other in [3, 4] as [UInt64] {
      #expect(out.entries(to: testIdentity(other).id) == [far.bytes])
    }
  }

  @Test func everyEntryIsAcknowledgedSoonEvenIfKnown() throws {
    var gossip = Gossip.linked(1, to: [2], at: seconds(0.8))
    _ = gossip.receive(.digest(gossip.document.digest), from: peer, at: seconds(0.8))
    _ = gossip.tick(at: seconds(0.9))
    let message = messages(1, by: 2)[0]
    for start in [1, 1.1] {
      let now = seconds(start)
      _ = gossip.receive(.entry(message.bytes), from: peer, at: now)
      let due = try #require(gossip.deadline)
      #expect(due > now && due <= now + .milliseconds(20))
      let sends = gossip.tick(at: due).sends.map(\.message)
      #expect(sends == [.entriesReceived([message.id.prefix])])
    }
    #expect(gossip.counters.entriesRepeated == 1)
  }

  @Test func unacknowledgedEntriesAreRetransmitted() {
    var gossip = Gossip.linked(1, to: [2])
    let message = messages(1)[0]
    var times = gossip.broadcast(message, at: seconds(1)).entries(to: peer).map { _ in seconds(1) }
    for (at, out) in drive(&gossip, until: seconds(60)) {
      times += out.entries(to: peer).map { _ in at }
    }
    #expect(times.count == 6)
    let pauses = zip(times.dropFirst(), times).map { $0 - $1 }
    #expect(pauses.first == .milliseconds(200))
    #expect(zip(pauses.dropFirst(), pauses).allSatisfy { $0 >= $1 })
    #expect(gossip.isFlushed(message.id))
  }

  @Test func anEntryIsSettledWhenAllNeighboursHaveIt() {
    var gossip = Gossip.linked(1, to: [2, 3])
    let message = messages(1)[0]
    _ = gossip.broadcast(message, at: seconds(1))
    #expect(!gossip.isFlushed(message.id))
    _ = gossip.receive(.entriesReceived([message.id.prefix]), from: peer, at: seconds(1.1))
    #expect(!gossip.isFlushed(message.id))
    // A neighbour that sends the entry counts as having acknowledged it.
    _ = gossip.receive(.entry(message.bytes), from: testIdentity(3).id, at: seconds(1.1))
    #expect(gossip.isFlushed(message.id))
  }

  @Test func outdatedEntriesAreNotRetransmitted() {
    var gossip = Gossip.linked(1, to: [2])
    let old = Entries.signed(1, sequence: 1, lamport: 1, Entries.presence("old"))
    let new = Entries.signed(1, sequence: 2, lamport: 2, Entries.presence("new"))
    #expect(gossip.broadcast(old, at: seconds(1)).entries(to: peer) == [old.bytes])
    #expect(gossip.broadcast(new, at: seconds(1.1)).entries(to: peer) == [new.bytes])
    #expect(gossip.isFlushed(old.id))
    let later = drive(&gossip, until: seconds(60)).flatMap { $0.out.entries(to: peer) }
    #expect(!later.isEmpty && later.allSatisfy { $0 == new.bytes })
  }

  @Test func aSilentNeighbourIsNeverFlooded() {
    var gossip = Gossip.linked(1, to: [2])
    let entries = messages(100)
    let first = entries.flatMap { gossip.broadcast($0, at: seconds(1)).entries(to: peer) }
    #expect(first == entries.prefix(4).map(\.bytes))
    for (at, out) in drive(&gossip, until: seconds(300)) {
      #expect(out.entries(to: peer).count <= 4, "at \(at)")
    }
  }

  @Test func theWindowBoundsEntriesInFlight() {
    var gossip = Gossip.linked(1, to: [2])
    let entries = messages(500)
    var now = seconds(1)
    var waiting = entries.flatMap { gossip.broadcast($0, at: now).entries(to: peer) }
    var (rounds, most, arrived) = (0, 0, 0)
    while !waiting.isEmpty, rounds < 1000 {
      rounds += 1
      most = max(most, waiting.count)
      arrived += waiting.count
      now = now + .milliseconds(20)
      let ids = waiting.map { SignedEntry.id(of: $0).prefix }
      waiting = []
      for start in stride(from: 0, to: ids.count, by: Control.idLimit) {
        let part = Array(ids[start..<min(start + Control.idLimit, ids.count)])
        waiting += gossip.receive(.entriesReceived(part), from: peer, at: now).entries(to: peer)
      }
    }
    #expect(arrived == 500 && most == 64)
    #expect(entries.allSatisfy { gossip.isFlushed($0.id) })
  }

  @Test func callsGoBeforeMessages() {
    var gossip = Gossip.linked(1, to: [2])
    let texts = messages(10)
    for entry in texts { _ = gossip.broadcast(entry, at: seconds(1)) }
    let claim = Entries.signed(1, sequence: 99, lamport: 99, Entries.claim(1))
    #expect(gossip.broadcast(claim, at: seconds(1)).entries(to: peer).isEmpty)
    let out = gossip.receive(
      .entriesReceived([texts[0].id.prefix]), from: peer, at: seconds(1.05))
    #expect(out.entries(to: peer).first == claim.bytes)
  }
}
