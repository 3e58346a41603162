import MusterBase
import MusterCore
import MusterCrypto

/// Fault injection and healing: partitions, one-way blocks, crashes, leaves, clock steps and
/// attacks.
extension Simulation {
  /// Injects a recurring fault and schedules its next occurrence.
  mutating func inject(_ fault: Fault) {
    // The attacker continues after all other faults have ended.
    guard !isHealed || fault == .attack else { return }
    if let pause = plan.pause(before: fault, &prng) { schedule(.fault(fault), in: pause) }
    switch fault {
    case .partition: cut()
    case .oneway: block()
    case .crash: crash(.nothing)
    case .forget: crash(.disk)
    case .amnesia: crash(.identity)
    case .leave: leave()
    case .clock: stepClock()
    case .attack: attack()
    case .delay, .loss, .bursts, .duplication, .reordering, .corruption, .rate, .disk, .late: break
    }
  }

  // MARK: Network faults

  private mutating func cut() {
    guard !isCut, nodes.count > 1 else { return }
    let island = nodes.filter { _ in prng.chance(0.5) }
    guard !island.isEmpty, island.count < nodes.count else { return }
    isCut = true
    note("--", "cut off: " + island.map(\.label).joined(separator: " "))
    trace.cut(island.map(\.index), at: now)
    network.partition(island.map(\.address))
    schedule(.heal, in: plan.outage(&prng))
  }

  /// Ends only the partition: one-way blocks are scheduled to end separately.
  mutating func healCut() {
    guard isCut else { return }
    isCut = false
    note("--", "healed")
    trace.healed(at: now)
    network.partition([])
  }

  private mutating func block() {
    guard nodes.count > 1 else { return }
    let sender = prng.below(nodes.count)
    let receiver = (sender + 1 + prng.below(nodes.count - 1)) % nodes.count
    let (from, to) = (nodes[sender].address, nodes[receiver].address)
    blockedDirections += 1
    note("--", "nothing passes from \(nodes[sender].label) to \(nodes[receiver].label)")
    trace.mark(.blocked(to: receiver), at: sender, now)
    network.setBlocked(true, from: from, to: to)
    schedule(.unblock(from: from, to: to), in: plan.outage(&prng))
  }

  mutating func unblock(from: Address, to: Address) {
    guard blockedDirections > 0 else { return }
    blockedDirections -= 1
    network.setBlocked(false, from: from, to: to)
  }

  /// Draws whether a node that enters the channel reaches nobody for a while.
  mutating func delayDiscovery(of index: Int) {
    let wait = isHealed ? nil : plan.lateness(&prng)
    network.setIsolated(wait != nil, nodes[index].address)
    guard let wait else { return }
    note(nodes[index].label, "reaches nobody yet")
    schedule(.found(index, run: nodes[index].run), in: wait)
  }

  mutating func endIsolation(of index: Int, run: Int) {
    guard nodes[index].run == run else { return }
    network.setIsolated(false, nodes[index].address)
  }

  private mutating func attack() {
    let targets = nodes.map(\.address)
    guard let sent = attacker.attack(targets, &prng) else { return }
    silence.injected(sent.datagram, from: sent.from)
    network.send(sent.datagram, from: sent.from, to: sent.to, at: now)
  }

  // MARK: Node faults

  private mutating func stepClock() {
    let index = prng.below(nodes.count)
    let errors: [Int64] = [-86_400_000, -5000, 5000, 86_400_000, .min / 2, .max / 2]
    let error = prng.one(of: errors)
    guard nodes[index].process != nil else { return }
    note(nodes[index].label, "clock steps by \(error) ms")
    trace.mark(.clock, at: index, now)
    setWallClock(index, error: error)
  }

  private mutating func crash(_ loss: Loss) {
    let index = prng.below(nodes.count)
    guard nodes[index].process != nil else { return }
    // An owner keeps its disk: grants may exist only there, and no other node can replace them.
    let taken = isOwner(index) ? .nothing : loss
    note(nodes[index].label, "crashes")
    trace.mark(.crash(taken), at: index, now)
    stop(index)
    schedule(.restart(index, taken), in: plan.outage(&prng))
  }

  mutating func stop(_ index: Int) {
    let crash = nodes[index].stop()
    for job in crash.written { written(job, at: index) }
    nodes[index].drafts = PeerTable()
    forgetMemory(of: index, crash)
    standings.isIn(nil, withOthers: false, at: index, now)
    entries.left(at: index)
    settling.changed(at: now)
    trace.sample(nodes[index], in: channel.id, at: now)
    for other in nodes.indices {
      for stream in StreamID.all { shownAt[shownIndex(stream, of: other, at: index)] = nil }
    }
  }

  /// Reports to the message checker the losses of a crash: entries that were not yet written, and
  /// messages whose display was not yet recorded on the disk.
  private mutating func forgetMemory(of index: Int, _ crash: Disk.Crash) {
    for id in crash.lost { messages.lost(id, at: nodes[index].reader) }
    for id in crash.shownAgain { messages.forgotten(id, at: nodes[index].reader) }
  }

  /// Stops the current process, if any, destroys the state given by `loss`, and starts a new
  /// process.
  mutating func restart(_ index: Int, _ loss: Loss) {
    if nodes[index].process != nil { stop(index) }
    if loss != .nothing { wipe(index) }
    if loss == .identity {
      adopt(Self.newIdentity(&prng), by: index)
      note(nodes[index].label, "has a new identity")
      renewInvite(of: index)
    }
    start(index)
  }

  private mutating func wipe(_ index: Int) {
    note(nodes[index].label, "remembers nothing")
    nodes[index].disk = Disk(seed: prng.next())
    nodes[index].disk.conditions = isHealed ? .init() : plan.diskConditions
    nodes[index].memory += 1
    calls.forgot(index)
  }

  private mutating func leave() {
    let index = prng.below(nodes.count)
    guard nodes[index].isPresent else { return }
    note(nodes[index].label, "leaves")
    trace.mark(.leaves, at: index, now)
    noteEndOfCall(index)
    nodes[index].isInChannel = false
    entries.left(at: index)
    let id = channel.id
    input(index) { $0.leave(id, at: $1) }
    finishLeaving(index, run: nodes[index].run, patience: 10)
  }

  /// Completes a leave once every neighbour has acknowledged it, or after `patience` further waits
  /// of 100 ms.
  mutating func finishLeaving(_ index: Int, run: Int, patience: Int) {
    guard nodes[index].run == run, let process = nodes[index].process else { return }
    let id = channel.id
    guard process.node.isFlushed(id) || patience == 0 else {
      schedule(
        .finishLeaving(index, run: run, patience: patience - 1), in: .milliseconds(100))
      return
    }
    settling.changed(at: now)
    input(index) { $0.finishLeaving(id, at: $1) }
    nodes[index].events.left()
    schedule(.rejoin(index, run: run), in: plan.outage(&prng))
  }

  mutating func rejoin(_ index: Int, run: Int) {
    guard nodes[index].run == run, nodes[index].process != nil else { return }
    // The node rejoins with the state on its disk, so all pending writes must finish first.
    guard nodes[index].disk.isIdle else {
      return schedule(.rejoin(index, run: run), in: .milliseconds(20))
    }
    forgetMemory(of: index, nodes[index].disk.crash())
    note(nodes[index].label, "returns")
    join(index)
  }

  // MARK: End of all faults

  /// Ends all faults of the network and the disks; crashed processes restart as scheduled.
  mutating func healAll() {
    isHealed = true
    isCut = false
    blockedDirections = 0
    note("--", "healed")
    trace.healed(at: now)
    network.heal()
    for sender in nodes.indices {
      nodes[sender].disk.conditions = Disk.Conditions()
      for receiver in nodes.indices where sender != receiver {
        network.setConditions(
          plan.healedConditions(&prng), from: nodes[sender].address, to: nodes[receiver].address)
      }
    }
  }
}
