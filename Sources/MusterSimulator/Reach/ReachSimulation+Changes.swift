import MusterBase
import MusterCrypto
import MusterDiscovery

/// Changes of the network, and starts and crashes of processes.
extension ReachSimulation {
  /// Attempts one random change of a kind that this run includes.
  mutating func change() {
    let kind = prng.one(of: scenario.changes)
    let isDone =
      switch kind {
      case .move: move()
      case .router: replaceRouter()
      case .rebind: rebind()
      case .renumber: renumber()
      case .cut: cut()
      case .rendezvous: killRendezvous()
      case .crash: crash()
      }
    guard isDone else { return }
    steadiness.changed(at: now)
    if let index = ReachChange.allCases.firstIndex(of: kind) { changeCounts[index] += 1 }
  }

  /// Makes the last change. Some absent members return, and from now on at least one dedicated
  /// rendezvous server runs.
  mutating func heal() {
    change()
    for index in nodes.indices where nodes[index].process == nil {
      let isBack = prng.chance(0.7) || index == scenario.offering
      if isBack { start(index) } else { note(nodes[index].label, "stays away") }
    }
    if !rendezvous.contains(where: { $0.server != nil }) {
      revive(prng.below(rendezvous.count))
    }
    isHealed = true
    setConditions()
    note("--", "healed")
  }

  // MARK: Homes

  private mutating func move() -> Bool {
    let index = prng.below(nodes.count)
    let homes = (0..<scenario.rendezvousHomes[0]).filter { $0 != network.home(of: index) }
    guard index != scenario.offering, !homes.isEmpty else { return false }
    let home = prng.one(of: homes)
    network.move(index, to: home)
    nodes[index].address = network.address(of: index)
    note(
      nodes[index].label,
      "moves to home \(home), \(network.kind(of: home).rawValue), at \(nodes[index].address)")
    schedule(.notice(index), in: prng.duration(.milliseconds(10), .milliseconds(500)))
    if scenario.hasV6[index] { scheduleV6(of: index) }
    return true
  }

  /// A random home with a router; nil if no home has one.
  private mutating func routedHome() -> Int? {
    let homes = (0..<network.homeCount).filter { network.kind(of: $0) != .none }
    return homes.isEmpty ? nil : prng.one(of: homes)
  }

  private mutating func replaceRouter() -> Bool {
    guard let home = routedHome() else { return false }
    let kind = ReachScenario.otherKind(than: network.kind(of: home), &prng)
    note("--", "home \(home) has another router: \(kind.rawValue)")
    network.become(kind, at: home)
    return true
  }

  private mutating func rebind() -> Bool {
    guard let home = routedHome() else { return false }
    note("--", "the router of home \(home) forgets all")
    network.rebind(home)
    return true
  }

  private mutating func renumber() -> Bool {
    guard let home = routedHome() else { return false }
    note("--", "home \(home) has another address")
    network.renumber(home)
    return true
  }

  private mutating func cut() -> Bool {
    let one = prng.below(network.homeCount)
    let other = prng.below(network.homeCount)
    guard one != other, !network.isCut(one, other) else { return false }
    note("--", "nothing passes between homes \(one) and \(other)")
    network.setCut(true, between: one, and: other)
    cuts.append([min(one, other), max(one, other)])
    schedule(.mend(one, other), in: prng.duration(.seconds(1), .seconds(20)))
    return true
  }

  mutating func mend(_ one: Int, _ other: Int) {
    note("--", "homes \(one) and \(other) have a path again")
    network.setCut(false, between: one, and: other)
    cuts.removeAll { $0 == [min(one, other), max(one, other)] }
  }

  // MARK: IPv6 addresses

  /// Schedules the first IPv6 addresses of the hosts that will have one, and losses and renewals of
  /// such addresses before the last change.
  mutating func scheduleV6() {
    for index in nodes.indices where scenario.hasV6[index] {
      scheduleV6(of: index)
      guard v6PRNG.chance(0.5) else { continue }
      let lossAt = v6PRNG.duration(.seconds(1), max(healAt - .zero, .seconds(1)))
      queue.schedule(.removeV6(index), at: .zero + lossAt)
      queue.schedule(
        .assignV6(index), at: .zero + lossAt + v6PRNG.duration(.zero, .seconds(5)))
    }
  }

  /// Duplicate address detection takes about a second, in which the host has an IPv4 address only.
  private mutating func scheduleV6(of index: Int) {
    schedule(.assignV6(index), in: v6PRNG.duration(.zero, .seconds(2)))
  }

  mutating func assignV6(to index: Int) {
    guard !isHealed || network.addresses(of: index).count == 1 else { return }
    network.assignV6(to: index)
    note(nodes[index].label, "is at \(network.addresses(of: index)[1]) too")
    noticeV6(of: index)
  }

  mutating func removeV6(of index: Int) {
    network.removeV6(of: index)
    note(nodes[index].label, "has no IPv6 address")
    noticeV6(of: index)
  }

  private mutating func noticeV6(of index: Int) {
    steadiness.changed(at: now)
    schedule(.notice(index), in: v6PRNG.duration(.milliseconds(10), .milliseconds(500)))
  }

  // MARK: Processes

  private mutating func killRendezvous() -> Bool {
    let number = prng.below(rendezvous.count)
    guard rendezvous[number].server != nil else { return false }
    note("--", "rendezvous \(number) dies")
    rendezvous[number].server = nil
    schedule(.revive(number), in: prng.duration(.milliseconds(500), .seconds(20)))
    return true
  }

  mutating func revive(_ number: Int) {
    guard rendezvous[number].server == nil else { return }
    note("--", "rendezvous \(number) is back")
    rendezvous[number].server = RendezvousServer(entropy: .seeded(prng.next()))
  }

  private mutating func crash() -> Bool {
    let index = prng.below(nodes.count)
    guard nodes[index].process != nil else { return false }
    note(nodes[index].label, "crashes")
    _ = nodes[index].stop()
    schedule(.restart(index), in: prng.duration(.milliseconds(100), .seconds(7)))
    return true
  }
}
