import MusterBase
import MusterSimulator
import Testing

private let a = Address(host: .v4(0x0A00_0001), port: 1)
private let b = Address(host: .v4(0x0A00_0002), port: 1)
private let c = Address(host: .v4(0x0A00_0003), port: 1)
private let outsider = Address(host: .v4(0x0A00_0063), port: 9)

private func network(_ change: (inout PathConditions) -> Void = { _ in }) -> Network {
  var conditions = PathConditions()
  conditions.delay = .milliseconds(10)
  change(&conditions)
  return Network(hosts: [a, b, c], conditions: conditions, seed: 1)
}

private func at(_ milliseconds: Int) -> Instant { .zero + .milliseconds(milliseconds) }

/// Delivers all datagrams in flight; returns them with their times.
private func drain(_ network: inout Network) -> [(at: Instant, delivery: Network.Delivery)] {
  var all: [(at: Instant, delivery: Network.Delivery)] = []
  while let deadline = network.deadline {
    all += network.tick(at: deadline).map { (deadline, $0) }
  }
  return all
}

/// Sends a thousand numbered datagrams from `a` to `b`, one per millisecond.
private func sendThousand(_ network: inout Network) {
  for number in 0..<1000 {
    let datagram = [UInt8(number >> 8), UInt8(number & 255), 0, 0, 0, 0, 0, 0]
    network.send(datagram, from: a, to: b, at: at(number))
  }
}

private func number(_ delivery: Network.Delivery) -> Int {
  Int(delivery.datagram[0]) << 8 | Int(delivery.datagram[1])
}

struct NetworkTests {
  @Test func aDatagramArrivesAfterTheDelayAndNotBefore() {
    var network = network()
    network.send([1, 2, 3], from: a, to: b, at: .zero)
    #expect(network.deadline == at(10))
    #expect(network.tick(at: at(9)).isEmpty)
    #expect(network.tick(at: at(10)) == [.init(datagram: [1, 2, 3], from: a, to: b)])
    #expect(network.deadline == nil)
  }

  @Test func aBroadcastReachesEveryoneElse() {
    var network = network()
    network.broadcast([7], from: a, at: .zero)
    #expect(drain(&network).map(\.delivery.to) == [b, c])
  }

  @Test func nobodyIsAtAnUnknownAddress() {
    var network = network()
    network.send([1], from: a, to: outsider, at: .zero)
    #expect(network.deadline == nil)
    #expect(network.counters.unroutable == 1)
  }

  @Test func unknownHostsKeepTheirAddress() {
    var network = network()
    network.send([1], from: outsider, to: b, at: .zero)
    #expect(drain(&network).map(\.delivery.from) == [outsider])
  }

  @Test func jitterAloneKeepsTheOrder() {
    var network = network { $0.jitter = .milliseconds(50) }
    sendThousand(&network)
    let numbers = drain(&network).map { number($0.delivery) }
    #expect(numbers == Array(0..<1000))
  }

  @Test func reorderingLetsLaterOnesOvertake() {
    var network = network {
      $0.reordering = 0.2
      $0.reorderingDelay = .milliseconds(5)
    }
    sendThousand(&network)
    let numbers = drain(&network).map { number($0.delivery) }
    let overtaken = zip(numbers, numbers.dropFirst()).count { $0 > $1 }
    #expect(numbers.sorted() == Array(0..<1000))
    #expect((80...250).contains(overtaken), "\(overtaken)")
  }

  @Test(arguments: [0.0, 0.05, 0.5, 1.0])
  func asManyAreLostAsShouldBe(loss: Double) {
    var network = network { $0.loss = loss }
    sendThousand(&network)
    let lost = 1000 - drain(&network).count
    #expect(abs(Double(lost) - 1000 * loss) <= 60, "\(lost)")
    #expect(network.counters.lost == UInt64(lost))
  }

  @Test func burstsAreLostTogether() {
    var network = network {
      $0.burstStart = 0.02
      $0.burstEnd = 0.1
    }
    sendThousand(&network)
    let numbers = drain(&network).map { number($0.delivery) }
    let gaps = zip(numbers, numbers.dropFirst()).map { $1 - $0 - 1 }.filter { $0 > 0 }
    let lost = gaps.reduce(0, +)
    #expect(lost > 50 && gaps.count > 3)
    // Independent losses would mostly be single ones; bursts lose several in a row.
    #expect(lost > 3 * gaps.count, "\(lost) in \(gaps.count)")
  }

  @Test func duplicatesAreWholeAndLater() {
    var network = network { $0.duplication = 0.3 }
    sendThousand(&network)
    let numbers = drain(&network).map { number($0.delivery) }
    #expect((1200...1400).contains(numbers.count))
    #expect(network.counters.duplicated == UInt64(numbers.count - 1000))
    for value in 0..<1000 { #expect((1...2).contains(numbers.count { $0 == value })) }
  }

  @Test func corruptionAltersOrShortens() {
    var network = network { $0.corruption = 1 }
    for _ in 0..<200 { network.send([1, 2, 3, 4, 5], from: a, to: b, at: .zero) }
    let received = drain(&network).map(\.delivery.datagram)
    #expect(received.count == 200)
    #expect(received.allSatisfy { $0 != [1, 2, 3, 4, 5] && $0.count <= 5 })
    #expect(received.contains { $0.count < 5 } && received.contains { $0.count == 5 })
  }

  @Test func aBottleneckSpacesDatagramsOutAndDropsWhatWouldWaitTooLong() {
    // 972 bytes and 28 of headers at 800 kbit/s: 10 ms each.
    var network = network {
      $0.kilobitsPerSecond = 800
      $0.queueLimit = .milliseconds(95)
    }
    let datagram = [UInt8](repeating: 0, count: 972)
    for _ in 0..<50 { network.send(datagram, from: a, to: b, at: .zero) }
    let arrivals = drain(&network).map(\.at)
    #expect(arrivals == (1...10).map { at(10 + 10 * $0) })
    #expect(network.counters.lost == 40)
    // The queue has run empty meanwhile.
    network.send(datagram, from: a, to: b, at: at(1000))
    #expect(network.deadline == at(1020))
  }

  @Test func aPartitionStopsBothWaysUntilItHeals() {
    var network = network()
    network.partition([a])
    network.send([1], from: a, to: b, at: .zero)
    network.send([2], from: b, to: a, at: .zero)
    network.send([3], from: b, to: c, at: .zero)
    #expect(drain(&network).map(\.delivery.datagram) == [[3]])
    #expect(network.counters.cut == 2)
    network.heal()
    network.send([4], from: a, to: b, at: .zero)
    #expect(drain(&network).map(\.delivery.datagram) == [[4]])
  }

  @Test func anIsolatedHostHearsOnlyOutsiders() {
    var network = network()
    network.setIsolated(true, a)
    network.partition([b])
    network.send([1], from: a, to: b, at: .zero)
    network.send([2], from: b, to: a, at: .zero)
    network.send([3], from: outsider, to: a, at: .zero)
    #expect(drain(&network).map(\.delivery.datagram) == [[3]])
    network.partition([])
    network.send([4], from: c, to: a, at: .zero)
    #expect(drain(&network).isEmpty)
    network.setIsolated(false, a)
    network.send([5], from: a, to: b, at: .zero)
    #expect(drain(&network).map(\.delivery.datagram) == [[5]])
    network.setIsolated(true, a)
    network.heal()
    network.send([6], from: b, to: a, at: .zero)
    #expect(drain(&network).map(\.delivery.datagram) == [[6]])
  }

  @Test func aBlockedDirectionLetsTheOtherPass() {
    var network = network()
    network.setBlocked(true, from: a, to: b)
    network.send([1], from: a, to: b, at: .zero)
    network.send([2], from: b, to: a, at: .zero)
    #expect(drain(&network).map(\.delivery.datagram) == [[2]])
    network.setBlocked(false, from: a, to: b)
    network.send([3], from: a, to: b, at: .zero)
    #expect(drain(&network).map(\.delivery.datagram) == [[3]])
  }

  @Test func conditionsBelongToOneDirection() {
    var network = network()
    var slow = PathConditions()
    slow.delay = .milliseconds(500)
    network.setConditions(slow, from: a, to: b)
    network.send([1], from: a, to: b, at: .zero)
    network.send([2], from: b, to: a, at: .zero)
    #expect(drain(&network).map(\.at) == [at(10), at(500)])
  }

  @Test func theSameSeedHasTheSameFate() {
    func run() -> [Int] {
      var network = network {
        $0.loss = 0.2
        $0.duplication = 0.2
        $0.reordering = 0.2
        $0.jitter = .milliseconds(30)
      }
      sendThousand(&network)
      return drain(&network).map { number($0.delivery) }
    }
    #expect(run() == run())
  }
}
