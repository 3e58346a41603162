import MusterBase
import MusterCrypto
import MusterDiscovery
import MusterWire
import Testing

/// Nodes that discover each other through a rendezvous only, over a network without delay in
/// which all nodes but the rendezvous are behind NATs.
private struct Apart {
  var nodes: [Discovery]
  var server = RendezvousServer(entropy: .seeded(9))
  var now = seconds(5)
  let index = testAddress(99)
  /// While off, the rendezvous neither receives nor sends.
  var isServing = true
  /// The rendezvous restarts after every hello.
  var renewsAfterHello = false
  /// Direct datagrams between nodes are lost.
  var isCut = false
  /// The peers that each node has sent to; only their datagrams pass (a NAT with address and
  /// port-dependent filtering, RFC 4787 section 5).
  private var holes: [Set<Int>]
  private(set) var found: [Set<Int>]
  /// The addresses at which each node reported a peer as silent.
  private(set) var silent: [[[Address]]]
  /// Announcements sent from node to node, including those that a NAT dropped.
  private(set) var candidateProbes = 0
  private var renewals: UInt64 = 0

  init(_ count: Int) {
    nodes = (0..<count).map { testDiscovery(UInt64($0) + 1) }
    holes = Array(repeating: [], count: count)
    found = Array(repeating: [], count: count)
    silent = Array(repeating: [], count: count)
    for number in 0..<count {
      perform(nodes[number].open(testKey, at: now), of: number)
      perform(nodes[number].setOwnAddresses([testAddress(number + 1)], at: now), of: number)
    }
  }

  mutating func begin(_ number: Int, at rendezvous: [Address]? = nil) {
    let servers = (rendezvous ?? [index]).map { Contact($0) }
    perform(nodes[number].setRendezvous(servers, at: now), of: number)
  }

  mutating func run(for duration: Duration) {
    let end = now + duration
    while let due = nodes.compactMap(\.deadline).min(), due <= end {
      now = max(now, due)
      for number in nodes.indices { perform(nodes[number].tick(at: now), of: number) }
      server.tick(at: now)
    }
    now = end
  }

  private mutating func perform(_ outputs: [Discovery.Output], of number: Int) {
    for output in outputs {
      switch output {
      case .broadcast, .twin: break
      case .found(let peer, _, _, _):
        let other = nodes.indices.first { testIdentity(UInt64($0) + 1).id == peer }
        if let other { found[number].insert(other) }
      case .silent(_, _, let addresses): silent[number].append(addresses)
      case .send(let datagram, let address): send(datagram, from: number, to: address)
      }
    }
  }

  private mutating func send(_ datagram: [UInt8], from number: Int, to address: Address) {
    let source = testAddress(number + 1)
    if address == index {
      guard isServing else { return }
      let answers = server.receive(datagram, from: source, seconds: 1_700_000_000, at: now)
      if renewsAfterHello, DatagramKind(of: datagram) == .rendezvousHello {
        renewals += 1
        server = RendezvousServer(entropy: .seeded(100 + renewals))
      }
      for case .send(let answer, let receiver) in answers {
        guard let other = node(at: receiver) else { continue }
        perform(nodes[other].receive(answer, from: index, at: now), of: other)
      }
    } else if let other = node(at: address) {
      candidateProbes += 1
      guard !isCut else { return }
      holes[number].insert(other)
      guard holes[other].contains(number) else { return }
      perform(nodes[other].receive(datagram, from: source, at: now), of: other)
    }
  }

  private func node(at address: Address) -> Int? {
    nodes.indices.first { testAddress($0 + 1) == address }
  }
}

struct RendezvousDiscoveryTests {
  @Test(arguments: 2...6)
  func thoseWhoRegisterFindEachOther(count: Int) {
    var apart = Apart(count)
    for number in 0..<count {
      apart.begin(number)
      apart.run(for: .seconds(Int64(number)))
    }
    apart.run(for: .seconds(2))
    for number in 0..<count {
      #expect(apart.found[number] == Set(0..<count).subtracting([number]))
    }
  }

  @Test func peersThatAnswerNowhereAreReportedOnce() {
    var apart = Apart(2)
    apart.isCut = true
    for number in 0...1 { apart.begin(number) }
    apart.run(for: .seconds(9))
    #expect(apart.silent == [[], []])
    apart.run(for: .seconds(60))
    #expect(apart.silent == [[[testAddress(2)]], [[testAddress(1)]]])
  }

  @Test func peersThatAnswerAreNotReported() {
    var apart = Apart(2)
    for number in 0...1 { apart.begin(number) }
    apart.run(for: .seconds(60))
    #expect(apart.found == [[1], [0]] && apart.silent == [[], []])
  }

  @Test func everyoneLearnsItsOutsideAddress() {
    var apart = Apart(1)
    apart.begin(0)
    #expect(apart.nodes[0].reachableAddresses == [testAddress(1)])
  }

  @Test func aRendezvousThatComesLaterIsFoundLater() {
    var apart = Apart(2)
    apart.isServing = false
    for number in 0...1 { apart.begin(number) }
    apart.run(for: .seconds(60))
    #expect(apart.found == [[], []])
    apart.isServing = true
    apart.run(for: .seconds(7))
    #expect(apart.found == [[1], [0]])
  }

  @Test func aRestartedRendezvousGetsNewRegistrations() {
    var apart = Apart(2)
    apart.begin(0)
    apart.run(for: .seconds(30))
    apart.server = RendezvousServer(entropy: .seeded(10))
    apart.begin(1)
    apart.run(for: .seconds(7))
    #expect(apart.found == [[1], [0]])
  }

  @Test func aCookieThatIsWorthNothingIsNotUsedForLong() {
    var apart = Apart(2)
    apart.begin(1)
    // It restarts after each hello, so the cookie in each registration is of the previous process.
    apart.renewsAfterHello = true
    apart.begin(0)
    apart.run(for: .seconds(1))
    apart.renewsAfterHello = false
    apart.run(for: .seconds(7))
    #expect(apart.found == [[1], [0]])
  }

  @Test func aPathThatOpensLateIsFoundSoon() {
    var apart = Apart(2)
    apart.isCut = true
    for number in 0...1 { apart.begin(number) }
    apart.run(for: .seconds(60))
    #expect(apart.found == [[], []])
    apart.isCut = false
    apart.run(for: .seconds(7))
    // One of the two suffices for a link.
    #expect(apart.found != [[], []])
  }

  @Test func aDeadRendezvousDelaysNobody() {
    var apart = Apart(2)
    for number in 0...1 { apart.begin(number, at: [testAddress(98), apart.index]) }
    apart.run(for: .milliseconds(300))
    #expect(apart.found == [[1], [0]])
  }

  @Test func probingEnds() {
    var apart = Apart(2)
    apart.begin(0)
    // The other node registers, but does not probe.
    apart.begin(1)
    apart.run(for: .seconds(1))
    let before = apart.candidateProbes
    for number in 0...1 {
      apart.nodes[number].setLinked([
        (
          SessionLinkID(
            key: testKey.keyID, peer: testIdentity(UInt64(2 - number)).id),
          testAddress(2 - number)
        )
      ])
    }
    apart.run(for: .seconds(600))
    #expect(apart.candidateProbes == before)
  }

  /// The maker of an invite chose its rendezvous, and must not learn of other channels.
  @Test func aRendezvousOfOneChannelLearnsOfNoOther() throws {
    var discovery = testDiscovery(1)
    _ = discovery.open(testKey, at: .zero)
    _ = discovery.open(otherKey, at: .zero)
    let server = testAddress(99)
    let hello = discovery.setRendezvous([Contact(server, for: [otherKey.channelID])], at: .zero)
    let token = try #require(
      hello.sends.compactMap { try? RendezvousHello(decoding: $0.datagram) }.first
    ).token
    let cookie = RendezvousCookie(
      token: token, cookie: [UInt8](repeating: 3, count: 16), period: 7, age: 600,
      seen: testAddress(8))
    var outputs = discovery.receive(cookie.encoded(), from: server, at: .zero)
    drive(&discovery, until: seconds(20)) { _, more in outputs += more }
    outputs += discovery.close(key: testKey.keyID, at: seconds(20))
    let sent = outputs.sends.filter { $0.address == server }
    let tags = Set(
      sent.compactMap { try? RendezvousRegistration(decoding: $0.datagram.dropLast(64)).tag })
    #expect(tags == [otherKey.rendezvousTag(period: 7).id.key])
    #expect(sent.allSatisfy { openedAnnouncement($0.datagram, key: testKey) == nil })
  }

  @Test func recordsThatNobodyAskedForAreDropped() {
    var discovery = testDiscovery(1)
    _ = discovery.open(testKey, at: .zero)
    _ = discovery.setRendezvous([Contact(testAddress(99))], at: .zero)
    var author = Author(2)
    let records = RendezvousRecords(
      token: 1, records: [.init(seen: testAddress(5), announcement: author.announcement())])
    #expect(discovery.receive(records.encoded(), from: testAddress(99), at: .zero).isEmpty)
    #expect(discovery.counters.foreignRecords == 1)
  }
}
