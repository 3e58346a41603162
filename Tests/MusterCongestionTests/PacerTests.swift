import MusterBase
import MusterCongestion
import Testing

/// A pacer on a virtual clock, and what has left it.
private struct World {
  var pacer = Pacer<Int>(estimate: DataRate(kbps: 1_000))
  var now = Instant.zero + .seconds(100)
  var items: [(at: Instant, item: Int)] = []
  var expired: [Int] = []
  var padding: [(at: Instant, bytes: Int)] = []
  var probes: [(at: Instant, probe: ProbeCluster.ID)] = []

  mutating func add(
    _ item: Int, _ priority: Pacer<Int>.Priority = .video, bytes: Int = 1_000,
    for time: Duration = .seconds(10)
  ) {
    pacer.add(item, priority, bytes: bytes, expiresAt: now + time, at: now)
  }

  /// Runs the clock from deadline to deadline.
  mutating func run(for time: Duration) {
    let end = now + time
    while let due = pacer.deadline, due <= end {
      now = max(now, due)
      let (released, late) = pacer.release(at: now)
      expired += late
      #expect(!released.isEmpty || !late.isEmpty, "nothing is due")
      if released.isEmpty, late.isEmpty { return }
      for release in released {
        switch release {
        case .item(let item, let probe):
          items.append((now, item))
          if let probe { probes.append((now, probe)) }
        case .padding(let bytes, let probe):
          padding.append((now, bytes))
          probes.append((now, probe))
        }
      }
    }
    now = end
  }

  func milliseconds(_ at: Instant) -> Double { (at - (.zero + .seconds(100))).inMilliseconds }
}

struct PacerTests {
  @Test func aProbeThatIsCancelledLeavesTheQueue() {
    var world = World()
    world.pacer.probe(ProbeCluster(id: 1, rate: DataRate(kbps: 3_000)), at: world.now)
    world.run(for: .milliseconds(3))
    world.add(7)
    world.pacer.cancelProbes()
    let padding = world.padding.count
    #expect(padding > 0)
    world.run(for: .seconds(1))
    #expect(world.padding.count == padding && world.items.map(\.item) == [7])
    #expect(world.pacer.deadline == nil)
  }

  @Test func theFirstPacketsDoNotWait() {
    var world = World()
    world.pacer = Pacer(estimate: DataRate(kbps: 1_000), initialWindow: 3_500)
    for item in 0..<6 {
      #expect((world.pacer.wait(at: world.now) == .zero) == (item < 4))
      world.add(item)
    }
    world.pacer.open()
    world.run(for: .zero)
    // Four by the window, and one burst.
    #expect(world.items.map(\.item) == [0, 1, 2, 3, 4])
    #expect(world.pacer.wait(at: world.now) > .milliseconds(10))
  }

  @Test func untilThePathIsKnownOnlyTheFirstPacketsLeave() {
    var world = World()
    world.pacer = Pacer(estimate: DataRate(kbps: 1_000), initialWindow: 3_500)
    for item in 0..<8 { world.add(item, for: item < 6 ? .milliseconds(500) : .seconds(2)) }
    world.run(for: .seconds(1))
    #expect(world.items.map(\.item) == [0, 1, 2, 3] && world.expired == [4, 5])
    world.pacer.open()
    world.run(for: .seconds(1))
    #expect(world.items.map(\.item) == [0, 1, 2, 3, 6, 7] && world.pacer.deadline == nil)
  }

  @Test func itemsLeaveAtTheRate() {
    var world = World()
    for item in 0..<12 { world.add(item) }
    world.run(for: .seconds(1))
    #expect(world.items.map(\.item) == Array(0..<12))
    // 1,000 bytes take 7.27 ms at 1,100 kbit/s, which is more than a burst.
    let times = world.items.map { world.milliseconds($0.at) }
    for (index, time) in times.enumerated() {
      #expect(abs(time - Double(index) * 8_000 / 1_100) < 0.01)
    }
    #expect(world.pacer.deadline == nil && world.pacer.queuedBytes == 0)
  }

  @Test func aBurstLastsFiveMilliseconds() {
    var world = World()
    world.pacer.set(rate: DataRate(kbps: 10_000), at: world.now)
    for item in 0..<100 { world.add(item) }
    world.run(for: .milliseconds(1))
    // 6,875 bytes are 5 ms at 11 Mbit/s.
    #expect(world.items.count == 7)
    world.run(for: .milliseconds(5))
    #expect(world.items.count == 14)
    // 100,000 bytes take 72.73 ms, of which 6 have passed.
    #expect(abs(world.pacer.wait(at: world.now).inMilliseconds - (100_000 / 1_375 - 6)) < 0.01)
  }

  @Test func anIdlePacerSavesNothingUp() {
    var world = World()
    world.run(for: .seconds(60))
    for item in 0..<5 { world.add(item) }
    world.run(for: .milliseconds(1))
    #expect(world.items.count == 1)
  }

  @Test func retransmissionsLeaveFirst() {
    var world = World()
    world.add(1)
    world.add(2)
    world.add(10, .retransmission)
    world.add(11, .retransmission)
    world.run(for: .seconds(1))
    #expect(world.items.map(\.item) == [10, 11, 1, 2])
  }

  @Test func whatIsLateExpires() {
    var world = World()
    for item in 0..<10 { world.add(item, for: .milliseconds(30)) }
    world.run(for: .seconds(1))
    #expect(world.items.map(\.item) == [0, 1, 2, 3, 4] && world.expired == [5, 6, 7, 8, 9])
    #expect(world.pacer.queuedBytes == 0)
  }

  @Test func audioTakesFromVideo() {
    var world = World()
    world.add(1)
    // 55 kbit/s, half of the pacing rate of 110.
    world.pacer.set(rate: DataRate(kbps: 100), at: world.now)
    for item in 2..<40 { world.add(item, bytes: 500) }
    for _ in 0..<50 {
      world.pacer.charge(137, at: world.now)
      world.run(for: .milliseconds(20))
    }
    // One second at 55 kbit/s is 6,875 bytes.
    #expect((12...14).contains(world.items.count), "\(world.items.count)")
  }

  /// However much is charged, as when the rate falls, the others are not shut out for long.
  @Test func aDebtIsBounded() throws {
    var world = World()
    for _ in 0..<1_000 { world.pacer.charge(1_000, at: world.now) }
    world.add(1)
    #expect(try #require(world.pacer.deadline) - world.now <= .milliseconds(501))
  }

  @Test func removedItemsDoNotLeave() {
    var world = World()
    for item in 0..<6 { world.add(item, item % 2 == 0 ? .video : .retransmission) }
    #expect(world.pacer.remove { $0 < 4 }.map(\.item) == [1, 3, 0, 2])
    #expect(world.pacer.queuedBytes == 2_000)
    world.run(for: .seconds(1))
    #expect(world.items.map(\.item) == [5, 4])
  }

  @Test func aProbeIsFilledWithPadding() throws {
    var world = World()
    world.pacer.probe(ProbeCluster(id: 3, rate: DataRate(kbps: 3_200)), at: world.now)
    world.add(1)
    world.run(for: .seconds(1))
    #expect(world.items.map(\.item) == [1] && world.probes.allSatisfy { $0.probe == 3 })
    #expect(world.probes.count >= ProbeCluster.packets)
    // A small packet goes first, before the item.
    #expect(world.padding[0].bytes == 100 && world.items[0].at > world.padding[0].at)
    let bytes = world.padding.reduce(1_000) { $0 + $1.bytes }
    // 15 ms at 3,200 kbit/s are 6,000 bytes.
    #expect((6_000..<7_200).contains(bytes))
    let last = world.milliseconds(try #require(world.probes.last).at)
    let spread = bytes - (world.padding.last?.bytes ?? 0)
    #expect(abs(last - Double(spread) * 8 / 3_200) < 0.01)
  }

  @Test func probesFollowOneAnother() {
    var world = World()
    for id in 1...2 {
      let rate = DataRate(kbps: 1_000 * Double(id))
      world.pacer.probe(ProbeCluster(id: id, rate: rate), at: world.now)
    }
    world.run(for: .seconds(1))
    let ids = world.probes.map(\.probe)
    #expect(ids == ids.sorted() && Set(ids) == [1, 2])
    #expect(world.pacer.deadline == nil)
  }

  /// On a slow path a cluster of large packets would fill the queue by itself.
  @Test func aSlowProbeHasSmallPackets() {
    var world = World()
    world.pacer.probe(ProbeCluster(id: 1, rate: DataRate(kbps: 100)), at: world.now)
    world.run(for: .seconds(1))
    #expect(world.padding.reduce(0) { $0 + $1.bytes } <= 500)
  }

  /// Whatever is added and charged, no second has more than the rate allows.
  @Test(arguments: 1...20 as ClosedRange<UInt64>)
  func theRateIsKept(seed: UInt64) {
    var random = PRNG(seed: seed)
    var world = World()
    var sizes: [Int] = []
    for _ in 0..<500 {
      for _ in 0..<random.below(4) {
        let bytes = 1 + random.below(1_200)
        world.add(
          sizes.count, random.below(2) == 0 ? .video : .retransmission, bytes: bytes,
          for: .milliseconds(1 + random.below(900)))
        sizes.append(bytes)
      }
      world.run(for: .milliseconds(random.below(20)))
    }
    world.run(for: .seconds(2))
    #expect(world.items.count + world.expired.count == sizes.count, "seed \(seed)")
    #expect(Set(world.items.map(\.item) + world.expired).count == sizes.count)
    for (index, first) in world.items.enumerated() {
      var bytes = 0
      for next in world.items[index...] where next.at - first.at <= .seconds(1) {
        bytes += sizes[next.item]
      }
      // A burst at either end, and the packet that completes it.
      #expect(bytes <= 137_500 + 2 * (688 + 1_200), "seed \(seed)")
    }
  }
}
