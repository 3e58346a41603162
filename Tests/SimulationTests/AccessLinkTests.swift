import MusterBase
import MusterSimulator
import Testing

private let a = Address(host: .v4(0x0A00_0001), port: 1)
private let b = Address(host: .v4(0x0A00_0002), port: 1)
private let c = Address(host: .v4(0x0A00_0003), port: 1)

private func at(_ milliseconds: Int) -> Instant { .zero + .milliseconds(milliseconds) }

/// A bottleneck at which a datagram of 972 bytes, 1000 with its headers, takes 10 ms.
private func bottleneck(queue: Duration = .milliseconds(300)) -> PathConditions {
  var conditions = PathConditions.ideal
  conditions.kilobitsPerSecond = 800
  conditions.queueLimit = queue
  return conditions
}

private let datagram = [UInt8](repeating: 0, count: 972)

private func network() -> Network {
  Network(hosts: [a, b, c], conditions: .ideal, seed: 1)
}

/// Delivers all datagrams in flight; returns them with their times.
private func drain(_ network: inout Network) -> [(at: Instant, delivery: Network.Delivery)] {
  var all: [(at: Instant, delivery: Network.Delivery)] = []
  while let deadline = network.deadline {
    all += network.tick(at: deadline).map { (deadline, $0) }
  }
  return all
}

@Suite struct AccessLinkTests {
  @Test func allPathsOfAHostShareItsLink() {
    var network = network()
    network.setAccess(up: bottleneck(), of: a)
    for receiver in [b, c, b, c] { network.send(datagram, from: a, to: receiver, at: .zero) }
    let arrived = drain(&network)
    #expect(arrived.map(\.at) == [at(10), at(20), at(30), at(40)])
    #expect(arrived.map(\.delivery.to) == [b, c, b, c])
    #expect(
      arrived.map(\.delivery.queueing)
        == [.zero, .milliseconds(10), .milliseconds(20), .milliseconds(30)])
  }

  @Test func theDirectionsAreSeparate() {
    var network = network()
    network.setAccess(up: bottleneck(), of: a)
    network.send(datagram, from: b, to: a, at: .zero)
    #expect(drain(&network).map(\.at) == [.zero])
  }

  @Test func whoArrivesFirstAtTheReceiversLinkPassesFirst() {
    var network = network()
    var far = PathConditions.ideal
    far.delay = .milliseconds(100)
    network.setAccess(up: far, of: a)
    network.setAccess(down: bottleneck(), of: c)
    network.send(datagram, from: a, to: c, at: .zero)
    network.send(datagram, from: b, to: c, at: at(95))
    let arrived = drain(&network)
    #expect(arrived.map(\.delivery.from) == [b, a])
    // The datagram from afar comes 5 ms after the other one and waits for the rest of its time.
    #expect(arrived.map(\.at) == [at(105), at(115)])
    #expect(arrived.map(\.delivery.queueing) == [.zero, .milliseconds(5)])
  }

  @Test func aFullQueueDrops() {
    var network = network()
    network.setAccess(down: bottleneck(queue: .milliseconds(20)), of: b)
    for _ in 0..<10 { network.send(datagram, from: a, to: b, at: .zero) }
    #expect(drain(&network).map(\.at) == [at(10), at(20), at(30)])
    #expect(network.counters.lost == 7)
  }

  @Test func conditionsChangeForWhatIsSentLater() {
    var network = network()
    network.setAccess(up: bottleneck(), of: a)
    network.send(datagram, from: a, to: b, at: .zero)
    var fast = bottleneck()
    fast.kilobitsPerSecond = 8000
    network.setAccess(up: fast, of: a)
    network.send(datagram, from: a, to: b, at: .zero)
    #expect(drain(&network).map(\.at) == [at(10), at(11)])
  }

  /// A burst lasts 1 / `burstEnd` datagrams on average and begins so often that a tenth is lost.
  @Test func burstsHaveTheirLengthAndTheirShare() {
    var network = network()
    var conditions = PathConditions.ideal
    (conditions.burstStart, conditions.burstEnd) = (0.25 * 0.1 / 0.9, 0.25)
    network.setAccess(up: conditions, of: a)
    var (losses, bursts, wasLost) = (0, 0, false)
    for number in 0..<40_000 {
      network.send([1], from: a, to: b, at: at(number))
      let isLost = drain(&network).isEmpty
      if isLost { losses += 1 }
      if isLost, !wasLost { bursts += 1 }
      wasLost = isLost
    }
    #expect((3600...4400).contains(losses))
    #expect((3.6...4.4).contains(Double(losses) / Double(bursts)))
  }

  /// On a medium that others use, too, what waits leaves together.
  @Test func aTransmissionTakesWhatWaits() {
    var network = network()
    network.setAccess(up: shared(wait: .milliseconds(6)), of: a)
    for _ in 0..<100 { network.send(datagram, from: a, to: b, at: .zero) }
    let times = drain(&network).map(\.at)
    let gaps = zip(times.dropFirst(), times).map { $0 - $1 }.filter { $0 != .microseconds(400) }
    // A datagram takes 0.4 ms, the longest transmission 4 ms.
    #expect(times.count == 100 && (8...9).contains(gaps.count), "\(gaps)")
    #expect(gaps.allSatisfy { $0 > .microseconds(400) })
  }

  /// Where audio goes first, it waits for other audio alone, and what is sent later waits for it.
  @Test func audioGoesFirstWhereItHasAQueueOfItsOwn() {
    var conditions = bottleneck()
    conditions.audioFirst = true
    var network = network()
    network.setAccess(up: conditions, of: a)
    let classes: [ServiceClass] = [.video, .video, .audio, .standard, .audio]
    for (number, serviceClass) in classes.enumerated() {
      var datagram = datagram
      datagram[0] = UInt8(number)
      network.send(datagram, as: serviceClass, from: a, to: b, at: .zero)
    }
    let arrived = drain(&network)
    #expect(arrived.map { $0.delivery.datagram[0] } == [0, 2, 1, 4, 3])
    #expect(arrived.map(\.at) == [at(10), at(10), at(20), at(20), at(40)])
  }

  @Test func theThroughputOfASharedMediumIsWhatPasses() throws {
    var network = network()
    let conditions = shared(wait: .milliseconds(6), failures: 0.2)
    network.setAccess(up: conditions, of: a)
    var bytes = 0
    for number in 0..<40_000 {
      // Twice as much as passes.
      network.send(datagram, from: a, to: b, at: .zero + .microseconds(number * 400))
    }
    for arrived in drain(&network) where arrived.at < at(16_000) { bytes += 1_000 }
    let expected = Double(try #require(conditions.throughput))
    #expect(abs(Double(bytes) * 8 / 16_000 / expected - 1) < 0.1, "\(bytes), \(expected)")
  }

  private func shared(wait: Duration, failures: Double = 0) -> PathConditions {
    var conditions = bottleneck()
    conditions.kilobitsPerSecond = 20_000
    conditions.contention = Contention(wait: wait, failures: failures)
    return conditions
  }
}
