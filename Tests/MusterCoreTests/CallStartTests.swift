import MusterBase
import MusterChannel
import MusterCore
import MusterCrypto
import MusterDiscovery
import MusterSimulator
import MusterWire
import Testing

/// When a node that wants a call starts one, and how that call merges with another one.
struct CallStartTests {
  private static let name = "\(Marker.text) start"
  private static let key = ChannelKey.fromName(name)
  private var channel: ChannelID { Self.key.channelID }

  /// The time until a host reports a call; nil if it takes more than ten seconds.
  private func startTime(_ index: Int, _ world: inout CoreWorld) -> Duration? {
    let start = world.now
    while world.hosts[index].starts.isEmpty {
      guard world.now - start < .seconds(10) else { return nil }
      world.run(for: .milliseconds(10))
    }
    return world.now - start
  }

  // MARK: Waiting

  @Test func whoeverIsFirstOnALANWaitsForASecond() throws {
    var world = CoreWorld(1)
    world.join(Self.name, Self.key)
    #expect(world.hosts[0].events.contains(.callState(.connecting)))
    let time = try #require(startTime(0, &world))
    #expect(time == .seconds(1))
    #expect(world.hosts[0].events.last == .callState(.connected))
  }

  @Test func membersThatComeAtOnceStartOneCallAsSoonAsTheyHaveMet() throws {
    for count in 2...6 {
      var world = CoreWorld(count)
      world.join(Self.name, Self.key)
      let time = try #require(startTime(0, &world))
      #expect(time <= .milliseconds(250), "\(count) nodes")
      world.run(for: .seconds(2))
      for host in world.hosts {
        #expect(host.starts.count == 1 && host.ends.isEmpty, "\(count) nodes")
        #expect(host.node.call(in: channel)?.participants.count == count)
      }
    }
  }

  /// At these one-way delays, a member learns late of a call that another one has just started.
  @Test(arguments: [1, 40, 100, 150])
  func membersThatComeAtOnceFromAfarStartOneCall(milliseconds: Int) {
    for count in 2...4 {
      var world = CoreWorld(count)
      world.delay = .milliseconds(milliseconds)
      for index in world.hosts.indices.reversed() {
        world.hosts[index].node.setFinders(rendezvousServers: 0, peers: true, dht: false)
        world.joinAlone(index, Self.name, Self.key)
        world.run(for: .milliseconds(15))
      }
      world.run(for: .seconds(6))
      for host in world.hosts {
        #expect(host.starts.count == 1 && host.ends.isEmpty, "\(count) nodes")
        #expect(host.node.call(in: channel)?.participants.count == count)
      }
    }
  }

  @Test(arguments: [1, 2, 3] as [UInt64])
  func theFirstOfSeveralStartsTheCall(seed: UInt64) throws {
    var world = CoreWorld(3, seed: seed)
    for index in [2, 0, 1] {
      world.joinAlone(index, Self.name, Self.key)
      world.run(for: .milliseconds(100))
    }
    world.run(for: .seconds(2))
    for (index, host) in world.hosts.enumerated() {
      #expect(world.activeCall(index, in: channel)?.info.initiator == world.id(2))
      #expect(host.starts.count == 1 && host.ends.isEmpty)
    }
  }

  @Test func whoeverMayBeFoundFromAfarWaitsLonger() throws {
    var world = CoreWorld(1)
    world.hosts[0].node.setFinders(rendezvousServers: 0, peers: true, dht: false)
    world.join(Self.name, Self.key)
    let time = try #require(startTime(0, &world))
    #expect(time == .seconds(5))
  }

  @Test(arguments: [true, false])
  func theWaitForARendezvousEndsASecondAfterItsAnswer(answers: Bool) throws {
    var world = CoreWorld(2) { index, configuration in
      configuration.offersRendezvous = index == 1
    }
    world.hosts[0].node.setFinders(rendezvousServers: 1, peers: false, dht: false)
    world.passes = { from, _, _ in from == 0 || answers }
    let server = world.hosts[1].address
    world.call(0) { $0.setRendezvous([Contact(server)], at: $1) }
    world.joinAlone(0, Self.name, Self.key)
    let time = try #require(startTime(0, &world))
    #expect(answers ? time <= .milliseconds(1100) : time == .seconds(5))
  }

  // MARK: Late newcomers

  /// Hosts 0 and 1 have been in a call for a while; then the others, cut off from them but not from
  /// each other, start one. The calls become known to each other after `apart`.
  private func merged(_ newcomers: Int, after apart: Duration) -> CoreWorld {
    let count = 2 + newcomers
    var world = CoreWorld(count)
    // The newcomers have the smallest ids and the smallest counters.
    let old = [count - 2, count - 1]
    world.passes = { from, to, _ in old.contains(from) == old.contains(to) }
    for index in old { world.joinAlone(index, Self.name, Self.key) }
    world.run(for: .seconds(12))
    for index in 0..<newcomers { world.joinAlone(index, Self.name, Self.key) }
    world.run(for: apart)
    for host in world.hosts { host.clear() }
    world.passes = { _, _, _ in true }
    world.run(for: .seconds(8))
    return world
  }

  @Test(arguments: [1, 2, 5])
  func aRunningCallIsNotDisplaced(newcomers: Int) throws {
    var world = merged(newcomers, after: .seconds(4))
    let (one, other) = (newcomers, newcomers + 1)
    let call = try #require(world.activeCall(one, in: channel))
    #expect(call.participants.count == world.hosts.count)
    #expect(call.info.initiator == world.id(one))
    for index in [one, other] {
      #expect(world.hosts[index].ends.isEmpty && world.hosts[index].starts.isEmpty)
      let silence = try #require(world.longestSilence(from: index, to: index == one ? other : one))
      #expect(silence <= .milliseconds(60))
    }
    for index in 0..<newcomers {
      #expect(world.hosts[index].ends == [CallEndReason.merged])
      #expect(world.activeCall(index, in: channel) == call)
      for speaker in 0..<newcomers where speaker != index {
        let silence = try #require(world.longestSilence(from: speaker, to: index))
        #expect(silence <= .milliseconds(300), "\(silence)")
      }
    }
    // Newcomers are ordinary participants, so the call continues when they leave.
    for index in 0..<newcomers {
      let channel = channel
      world.call(index) { $0.leaveCall(in: channel, at: $1) }
    }
    world.run(for: .seconds(1))
    for index in [one, other] {
      #expect(world.hosts[index].ends.isEmpty)
      #expect(world.activeCall(index, in: channel)?.participants.count == 2)
    }
  }

  /// The longest-present participant succeeds, not one who came in with a call of its own.
  @Test func aNewcomerIsTheLastInTheOrderOfSuccession() throws {
    var world = merged(2, after: .seconds(4))
    let call = try #require(world.activeCall(3, in: channel))
    #expect(call.byPresence.prefix(2) == [world.id(2), world.id(3)])
    world.passes = { from, to, _ in from != 2 && to != 2 }
    world.run(for: .seconds(30))
    #expect(world.activeCall(0, in: channel)?.info.initiator == world.id(3))
  }
}
