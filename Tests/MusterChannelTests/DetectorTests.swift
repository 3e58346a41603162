import MusterBase
import MusterChannel
import MusterCrypto
import MusterWire
import Testing

/// Nodes that probe each other over lossy links, on a virtual clock.
private struct Watchers {
  let ids: [NodeID]
  var detectors: [FailureDetector]
  var now = Instant(nanoseconds: 1_000_000_000)
  var heard: [[Instant?]]
  var isSilent: [Bool]
  var failed: [(by: Int, of: Int, at: Instant)] = []
  var pings = 0
  let loss: Double
  private var random: PRNG

  init(_ count: Int, loss: Double, seed: UInt64) {
    ids = (0..<count).map { NodeID(Bytes32([UInt8](repeating: UInt8($0 + 1), count: 32)) ?? .zero) }
    detectors = (0..<count).map { FailureDetector(seed: seed &+ UInt64($0)) }
    heard = Array(repeating: Array(repeating: nil, count: count), count: count)
    isSilent = Array(repeating: false, count: count)
    self.loss = loss
    random = PRNG(seed: seed)
    let neighbourReport = NeighbourReport(
      bootID: 1, heard: ids.map(\.key.prefix).sorted(), suspected: [])
    for position in 0..<count {
      for other in 0..<count where other != position {
        detectors[position].linkUp(ids[other], at: now)
        detectors[position].noted(neighbourReport, of: ids[other], at: now)
      }
    }
  }

  /// Advances the clock in steps of 5 ms.
  mutating func run(for duration: Duration) {
    let end = now + duration
    while now < end {
      now = now + .milliseconds(5)
      for position in ids.indices where !isSilent[position] { tick(position) }
    }
  }

  private mutating func tick(_ position: Int) {
    guard let due = detectors[position].deadline, due <= now else { return }
    let row = heard[position]
    let outputs = detectors[position].tick(
      at: now, lastHeard: { id in ids.firstIndex(of: id).flatMap { row[$0] } },
      roundTrip: { _ in .milliseconds(2) })
    for output in outputs { perform(output, of: position) }
  }

  private mutating func arrives(_ position: Int, _ other: Int) -> Bool {
    guard !isSilent[other], !random.chance(loss) else { return false }
    heard[other][position] = now
    return true
  }

  private mutating func perform(_ output: FailureDetector.Output, of position: Int) {
    func index(_ id: NodeID) -> Int { ids.firstIndex(of: id) ?? 0 }
    switch output {
    case .ping(let peer):
      pings += 1
      if arrives(position, index(peer)) { _ = arrives(index(peer), position) }
    case .ask(let helper, let target, let token):
      guard arrives(position, index(helper)) else { return }
      let outputs = detectors[index(helper)].receiveProbe(
        target, token: token, from: ids[position], at: now)
      for output in outputs { perform(output, of: index(helper)) }
    case .answer(let requester, let target, let token, let answered):
      guard arrives(position, index(requester)) else { return }
      _ = detectors[index(requester)].receiveProbed(
        target, token: token, answered: answered, from: ids[position], at: now)
    case .fails(let peer):
      failed.append((position, index(peer), now))
      detectors[position].linkDown(peer)
    case .suspects, .clears: break
    }
  }
}

struct DetectorTests {
  @Test(arguments: [(2, 0.0), (2, 0.1), (5, 0.1), (17, 0.1)])
  func aCrashIsCertainEverywhereWithinFiveSeconds(_ nodes: Int, _ loss: Double) {
    for seed in 1...5 as ClosedRange<UInt64> {
      var world = Watchers(nodes, loss: loss, seed: seed)
      world.run(for: .seconds(10))
      #expect(world.failed.isEmpty, "seed \(seed)")
      world.isSilent[0] = true
      let crashed = world.now
      world.run(for: .seconds(8))
      #expect(world.failed.map(\.by).sorted() == Array(1..<nodes), "seed \(seed)")
      let last = world.failed.map { $0.at - crashed }.max() ?? .zero
      // In a whole node, gossip of suspicions shortens the last detections among many nodes.
      #expect(last < (nodes > 5 ? .seconds(8) : .milliseconds(5800)), "seed \(seed): \(last)")
    }
  }

  @Test func silenceOfTwoAndAHalfSecondsFailsNobody() {
    for seed in 1...20 as ClosedRange<UInt64> {
      var world = Watchers(5, loss: 0.1, seed: seed)
      world.run(for: .seconds(5))
      world.isSilent[1] = true
      world.run(for: .milliseconds(2500))
      world.isSilent[1] = false
      world.run(for: .seconds(5))
      #expect(world.failed.isEmpty, "seed \(seed)")
    }
  }

  @Test func lossAloneFailsNobody() {
    var world = Watchers(5, loss: 0.1, seed: 7)
    world.run(for: .seconds(3600))
    #expect(world.failed.isEmpty)
    // Each of five nodes may send five pings a second: one every 0.3 s, and more after a loss.
    #expect(world.pings < 5 * 3600 * 5)
  }

  @Test func aSuspendedProcessRaisesItsOwnTimeouts() {
    var world = Watchers(3, loss: 0, seed: 3)
    world.run(for: .seconds(2))
    world.isSilent[2] = true
    world.run(for: .seconds(2))
    world.isSilent[2] = false
    world.run(for: .milliseconds(500))
    #expect(world.detectors[2].health > 0 || world.detectors[2].suspected.isEmpty)
    world.run(for: .seconds(10))
    #expect(world.failed.isEmpty)
    #expect(world.detectors[2].health == 0)
  }

  /// The rows of memberlist's `suspicion_test.go`. The time at which a silent peer fails although a
  /// helper hears it.
  private func failure(isHeardInAnotherRun: Bool) throws -> Duration {
    let (peer, helper) = (testIdentity(1).id, testIdentity(2).id)
    var detector = FailureDetector(seed: 1)
    for id in [peer, helper] { detector.linkUp(id, at: .zero) }
    let neighbourReport = NeighbourReport(bootID: 1, heard: [peer.key.prefix], suspected: [])
    detector.noted(neighbourReport, of: helper, at: .zero)
    var now = Instant.zero
    while now < seconds(20) {
      now = now + .milliseconds(5)
      let current = now
      let outputs = detector.tick(
        at: now, lastHeard: { $0 == helper ? current : .zero }, roundTrip: { _ in nil })
      for output in outputs {
        if case .ask(_, let target, let token) = output {
          _ = detector.receiveProbed(target, token: token, answered: true, from: helper, at: now)
          if isHeardInAnotherRun { detector.heardInAnotherRun(peer, at: now) }
        }
        if output == .fails(peer) { return now - .zero }
      }
    }
    throw CancellationError()
  }

  @Test func anotherRunOfThePeerIsNoReasonForPatience() throws {
    let patient = try failure(isHeardInAnotherRun: false)
    #expect(patient > .seconds(8))
    #expect(try failure(isHeardInAnotherRun: true) < .seconds(6))
  }

  @Test(arguments: [(0, 0, 30_000), (1, 2, 14_000), (2, 3, 4810), (3, 4, -2000)])
  func suspicionsShortenAsLifeguardSays(_ confirmations: Int, _ elapsed: Int, _ expected: Int) {
    let timeout = Suspicion.timeout(
      confirmations: confirmations, expected: 3, minimum: .seconds(2), maximum: .seconds(30))
    let remaining = timeout - .seconds(elapsed)
    #expect(abs(remaining.wholeNanoseconds / 1_000_000 - Int64(expected)) <= 5)
  }
}

struct ReachabilityTests {
  private func id(_ number: UInt8) -> NodeID {
    NodeID(Bytes32([UInt8](repeating: number, count: 32)) ?? .zero)
  }

  private func heard(_ numbers: [UInt8]) -> [UInt64] { numbers.map { id($0).key.prefix }.sorted() }

  @Test func aChainIsReachedToItsEnd() {
    let reached = Reachability.reachable(
      from: id(1), links: [id(2)],
      reports: [(id(2), heard([1, 3])), (id(3), heard([2, 4])), (id(4), heard([3]))])
    #expect(reached == [id(2), id(3), id(4)])
  }

  @Test func aUnidirectionalLinkDoesNotReach() {
    let reached = Reachability.reachable(
      from: id(1), links: [id(2)], reports: [(id(2), heard([1, 3])), (id(3), heard([]))])
    #expect(reached == [id(2)])
  }

  @Test func theOtherSideOfACutIsNotThere() {
    let reached = Reachability.reachable(
      from: id(1), links: [id(2)],
      reports: [
        (id(2), heard([1])), (id(3), heard([1, 2, 4])), (id(4), heard([1, 2, 3])),
      ])
    #expect(reached == [id(2)])
  }

  @Test(arguments: [25, 40, 100])
  func theRingOfManyIsConnectedAlsoWithoutAnyTwo(_ count: Int) {
    let members = (0..<count).map { number in
      NodeID(
        Bytes32([UInt8(number / 256), UInt8(number % 256)] + [UInt8](repeating: 0, count: 30))
          ?? .zero)
    }
    var random = PRNG(seed: UInt64(count))
    for _ in 0..<50 {
      let gone = [random.below(count), random.below(count)]
      let left = members.indices.filter { !gone.contains($0) }
      var reached = [left[0]]
      var waiting = [left[0]]
      while let position = waiting.popLast() {
        for other in left where !reached.contains(other) {
          guard
            Topology.wants(members[position], members[other], members: members, bothInCall: false)
          else { continue }
          reached.append(other)
          waiting.append(other)
        }
      }
      #expect(reached.count == left.count)
    }
    let degree = members.indices.filter {
      $0 != 0 && Topology.wants(members[0], members[$0], members: members, bothInCall: false)
    }.count
    #expect(degree == 2 * Topology.reach)
    #expect(Topology.wants(members[0], members[count / 2], members: members, bothInCall: true))
  }
}
