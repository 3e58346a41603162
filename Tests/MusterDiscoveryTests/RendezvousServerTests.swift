import MusterBase
import MusterCrypto
import MusterDiscovery
import MusterWire
import Testing

/// A rendezvous, and clients that build their datagrams directly.
private struct Meeting {
  var server = RendezvousServer(entropy: .seeded(1))
  var now = seconds(10)
  /// 1.7 billion seconds since 1970, a little into a period.
  var clock: UInt64 = 1_700_000_100

  mutating func receive(_ datagram: [UInt8], from source: Address) -> [Sent] {
    server.receive(datagram, from: source, seconds: clock, at: now).map { output in
      switch output {
      case .send(let datagram, let address): Sent(datagram: datagram, address: address)
      }
    }
  }

  mutating func cookie(_ source: Address) throws -> RendezvousCookie {
    let answer = try #require(
      receive(RendezvousHello(token: 7).encoded(), from: source).first)
    #expect(answer.address == source)
    return try RendezvousCookie(decoding: answer.datagram)
  }

  mutating func register(
    _ slot: UInt64, from source: Address, in key: ChannelKey = testKey,
    announcement: [UInt8] = [1, 2, 3], wants: Bool = true, at other: Address? = nil
  ) throws -> [Sent] {
    let cookie = try cookie(source)
    let bytes = registration(slot, cookie, in: key, announcement: announcement, wants: wants)
    return receive(bytes, from: other ?? source)
  }

  func registration(
    _ slot: UInt64, _ cookie: RendezvousCookie, in key: ChannelKey = testKey,
    announcement: [UInt8] = [1, 2, 3], wants: Bool = true, signer: ChannelKey? = nil
  ) -> [UInt8] {
    let tag = key.rendezvousTag(period: cookie.period)
    let bytes = RendezvousRegistration(
      token: slot, cookie: cookie.cookie, period: cookie.period, tag: tag.id.key, slot: slot,
      wantsRecords: wants, announcement: announcement
    ).encoded()
    let signing = (signer ?? key).rendezvousTag(period: cookie.period)
    return bytes + signing.sign(Array("muster/1 rendezvous".utf8) + bytes)
  }
}

private func records(_ sent: Sent) throws -> [RendezvousRecords.Record] {
  try RendezvousRecords(decoding: sent.datagram).records
}

struct RendezvousServerTests {
  @Test func twoRegistrationsAreReportedToEachOther() throws {
    var meeting = Meeting()
    let (a, b) = (testAddress(1), testAddress(2))
    let first = try meeting.register(1, from: a, announcement: [1])
    #expect(first.count == 1 && first[0].address == a)
    #expect(try records(first[0]).isEmpty)
    let second = try meeting.register(2, from: b, announcement: [2])
    #expect(second.map(\.address) == [b, a])
    #expect(try records(second[0]) == [.init(seen: a, announcement: [1])])
    #expect(try records(second[1]) == [.init(seen: b, announcement: [2])])
    // A renewal notifies nobody, unless its sender is still searching.
    #expect(try meeting.register(2, from: b, announcement: [3], wants: false).map(\.address) == [b])
    for _ in 0..<4 {
      #expect(try meeting.register(2, from: b, announcement: [4]).map(\.address) == [b, a])
    }
    #expect(try meeting.register(2, from: b, announcement: [4]).map(\.address) == [b])
    meeting.now = meeting.now + .seconds(4)
    _ = try meeting.register(1, from: a, announcement: [1], wants: false)
    #expect(try meeting.register(2, from: b, announcement: [4]).map(\.address) == [b, a])
    // A registration cannot be replayed for a second answer.
    #expect(try meeting.register(2, from: b, announcement: [4]).map(\.address) == [b])
  }

  @Test func aTagIsOfNoUseWithoutItsKey() throws {
    var meeting = Meeting()
    _ = try meeting.register(1, from: testAddress(1))
    let cookie = try meeting.cookie(testAddress(2))
    let forged = meeting.registration(2, cookie, signer: otherKey)
    #expect(meeting.receive(forged, from: testAddress(2)).isEmpty)
    #expect(meeting.server.counters.forged == 1)
    let other = try meeting.register(2, from: testAddress(2), in: otherKey)
    #expect(other.count == 1)
    #expect(try records(other[0]).isEmpty)
  }

  @Test func aCookieIsOfItsAddressAndItsTime() throws {
    var meeting = Meeting()
    #expect(try meeting.register(1, from: testAddress(1), at: testAddress(2)).isEmpty)
    let cookie = try meeting.cookie(testAddress(1))
    meeting.now = meeting.now + .seconds(29)
    #expect(meeting.receive(meeting.registration(1, cookie), from: testAddress(1)).count == 1)
    meeting.now = meeting.now + .seconds(61)
    #expect(meeting.receive(meeting.registration(1, cookie), from: testAddress(1)).isEmpty)
    #expect(meeting.server.counters.wrongCookie == 2)
  }

  @Test func thePeriodBeforeIsTakenStill() throws {
    var meeting = Meeting()
    meeting.clock = 3600 * 472_222 - 1
    let cookie = try meeting.cookie(testAddress(1))
    #expect(cookie.period == 472_221 && cookie.age == 3599)
    meeting.clock += 2
    #expect(meeting.receive(meeting.registration(1, cookie), from: testAddress(1)).count == 1)
    meeting.clock += 3600
    #expect(meeting.receive(meeting.registration(1, cookie), from: testAddress(1)).isEmpty)
  }

  @Test func recordsAreForgottenUnlessRenewed() throws {
    var meeting = Meeting()
    _ = try meeting.register(1, from: testAddress(1))
    _ = try meeting.register(2, from: testAddress(2))
    meeting.now = meeting.now + .seconds(40)
    _ = try meeting.register(2, from: testAddress(2))
    meeting.now = meeting.now + .seconds(40)
    meeting.server.tick(at: meeting.now)
    #expect(meeting.server.count == 1)
    _ = try meeting.register(2, from: testAddress(2), announcement: [])
    #expect(meeting.server.count == 0)
  }

  @Test func nothingUnprovenMakesItSayMoreThanItHeard() throws {
    var meeting = Meeting()
    var prng = PRNG(seed: 4)
    let cookie = try meeting.cookie(testAddress(9))
    let valid = meeting.registration(1, cookie)
    var (heard, answered) = (0, 0)
    for number in 0..<20_000 {
      var bytes = prng.bytes(prng.below(1200))
      switch prng.below(4) {
      case 0: bytes = RendezvousHello(token: prng.next()).encoded()
      case 1: bytes = valid
      case 2: if !bytes.isEmpty { bytes[0] = 0x30 + UInt8(prng.below(4)) }
      default: break
      }
      heard += bytes.count
      // The source is never the one address that has a cookie.
      let source = Address(host: .v4(0x0B00_0000 | UInt32(prng.below(1 << 20))), port: 9)
      let answers = meeting.receive(bytes, from: source)
      answered += answers.reduce(0) { $0 + $1.datagram.count }
      #expect(answers.allSatisfy { $0.datagram.count <= bytes.count }, "\(number)")
    }
    #expect(answered <= heard)
    #expect(meeting.server.count == 0)
  }

  @Test func oneHouseholdCannotTakeAllRecords() throws {
    var meeting = Meeting()
    for slot in 0..<200 {
      // Every record under a tag of its own.
      let key = try #require(
        ChannelKey(secret: [UInt8](repeating: UInt8(slot), count: 32)))
      _ = try meeting.register(UInt64(slot), from: testAddress(1), in: key)
      meeting.now = meeting.now + .milliseconds(125)
    }
    #expect(meeting.server.count == 64)
    #expect(try meeting.register(1, from: testAddress(2)).count == 1)
    #expect(meeting.server.count == 65)
  }

  /// Neither a full channel nor a record that moves between two ports makes the server send more
  /// than three bytes for each that it gets.
  @Test(arguments: [false, true])
  func aRegisteredNodeGetsThreeTimesItsOwnBytes(moves: Bool) throws {
    var meeting = Meeting()
    let announcement = [UInt8](repeating: 7, count: 300)
    let cookies = try (0..<62).map { try meeting.cookie(testAddress($0)) }
    var (heard, said) = (0, 0)
    func register(_ slot: Int, port: UInt16, _ meeting: inout Meeting) throws {
      var source = testAddress(slot)
      var cookie = cookies[slot]
      if port != source.port {
        source.port = port
        cookie = try meeting.cookie(source)
      }
      let bytes = meeting.registration(UInt64(slot), cookie, announcement: announcement)
      heard += bytes.count
      said += meeting.receive(bytes, from: source).reduce(0) { $0 + $1.datagram.count }
      meeting.now = meeting.now + .milliseconds(70)
    }
    for slot in 0..<62 { try register(slot, port: 4000, &meeting) }
    for round in 0..<200 {
      try register(3, port: moves && round % 2 == 0 ? 5000 : 4000, &meeting)
      #expect(said <= 3 * heard)
    }
    #expect(said > heard && meeting.server.counters.unpaid > 0 || !moves)
  }

  @Test func aNewcomerHearsOfAllInTurnAndAllOfIt() throws {
    var meeting = Meeting()
    let announcement = [UInt8](repeating: 7, count: 181)
    for round in 0..<5 {
      for slot in 0..<30 {
        _ = try meeting.register(
          UInt64(slot), from: testAddress(slot), announcement: announcement, wants: round == 0)
        meeting.now = meeting.now + .milliseconds(150)
      }
    }
    var heard: [Address] = []
    for round in 0..<8 {
      let sent = try meeting.register(99, from: testAddress(99), announcement: announcement)
      if round == 0 { #expect(sent.count { $0.address != testAddress(99) } == 30) }
      for answer in sent where answer.address == testAddress(99) {
        heard += try records(answer).map(\.seen)
      }
      meeting.now = meeting.now + .seconds(1)
    }
    #expect(
      heard.prefix(30).map(\.description).sorted()
        == (0..<30).map { testAddress($0).description }.sorted())
  }
}
