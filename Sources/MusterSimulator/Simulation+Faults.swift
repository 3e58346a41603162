import MusterBase
import MusterCore
import MusterCrypto

/// What goes wrong, and how it is made good again.
extension Simulation {
  /// A fault of the kinds that come now and then.
  mutating func strike(_ fault: Fault) {
    // A stranger does not care that everyone else has gone quiet.
    guard !isCalm || fault == .attack else { return }
    if let pause = plan.pause(before: fault, &prng) { schedule(.fault(fault), in: pause) }
    switch fault {
    case .partition: cut()
    case .oneway: block()
    case .crash: crash()
    case .leave: leave()
    case .clock: stepClock()
    case .attack: attack()
    case .delay, .loss, .bursts, .duplication, .reordering, .corruption, .rate, .amnesia: break
    }
  }

  // MARK: The network

  private mutating func cut() {
    guard !isCut, !isCallEnding, nodes.count > 1 else { return }
    let island = nodes.filter { _ in prng.chance(0.5) }
    guard !island.isEmpty, island.count < nodes.count else { return }
    isCut = true
    note("--", "cut off: " + island.map(\.label).joined(separator: " "))
    network.partition(island.map(\.address))
    schedule(.heal, in: prng.duration(.milliseconds(100), .seconds(7)))
  }

  /// Ends the partition only: one-way blocks have ends of their own.
  mutating func healCut() {
    guard isCut else { return }
    isCut = false
    note("--", "healed")
    network.partition([])
  }

  private mutating func block() {
    guard !isCallEnding, nodes.count > 1 else { return }
    let sender = prng.below(nodes.count)
    let receiver = (sender + 1 + prng.below(nodes.count - 1)) % nodes.count
    let (from, to) = (nodes[sender].address, nodes[receiver].address)
    blockedDirections += 1
    note("--", "nothing passes from \(nodes[sender].label) to \(nodes[receiver].label)")
    network.setBlocked(true, from: from, to: to)
    schedule(.unblock(from: from, to: to), in: prng.duration(.milliseconds(100), .seconds(7)))
  }

  mutating func unblock(from: Address, to: Address) {
    guard blockedDirections > 0 else { return }
    blockedDirections -= 1
    network.setBlocked(false, from: from, to: to)
  }

  private mutating func attack() {
    let targets = nodes.map(\.address)
    guard let sent = attacker.attack(targets, &prng) else { return }
    silence.injected(sent.datagram, from: sent.from)
    network.send(sent.datagram, from: sent.from, to: sent.to, at: now)
  }

  // MARK: The nodes

  private mutating func stepClock() {
    let place = prng.below(nodes.count)
    let errors: [Int64] = [-86_400_000, -5000, 5000, 86_400_000, .min / 2, .max / 2]
    let error = errors[prng.below(errors.count)]
    guard nodes[place].node != nil else { return }
    note(nodes[place].label, "clock steps by \(error) ms")
    setWallClock(place, error: error)
  }

  private mutating func crash() {
    let place = prng.below(nodes.count)
    guard nodes[place].node != nil, !isCallEnding else { return }
    let isForgetful = plan.isOn(.amnesia) && prng.chance(0.3 + 0.7 * plan.strength(.amnesia))
    note(nodes[place].label, "crashes")
    stop(place)
    schedule(
      .restart(place, forgetful: isForgetful),
      in: prng.duration(.milliseconds(20), .seconds(6)))
  }

  private mutating func stop(_ place: Int) {
    nodes[place].stop()
    lastChangeAt = now
    for other in nodes.indices { shownAt[place * nodes.count + other] = nil }
  }

  mutating func restart(_ place: Int, forgetful: Bool) {
    guard nodes[place].node == nil else { return }
    if forgetful {
      var entropy = Entropy.seeded(prng.next())
      adopt(Identity(generating: &entropy), by: place)
      note(nodes[place].label, "has a new identity")
    }
    start(place)
  }

  private mutating func leave() {
    let place = prng.below(nodes.count)
    let channel = key.channelID
    guard nodes[place].node != nil, nodes[place].isInChannel, !isCallEnding, mayLeaveCall(place)
    else { return }
    note(nodes[place].label, "leaves")
    nodes[place].isInChannel = false
    input(place) { $0.leave(channel, at: $1) }
    finishLeaving(place, run: nodes[place].run, patience: 10)
  }

  /// Waits until everyone has heard the last hello: a second, longer if that ends the call for all.
  mutating func finishLeaving(_ place: Int, run: Int, patience: Int) {
    guard nodes[place].run == run, let node = nodes[place].node else { return }
    let channel = key.channelID
    guard node.isSettled(channel) || patience == 0 && !nodes[place].isEndingCall else {
      schedule(
        .finishLeaving(place, run: run, patience: max(patience - 1, 0)), in: .milliseconds(100))
      return
    }
    nodes[place].isEndingCall = false
    lastChangeAt = now
    input(place) { $0.finishLeaving(channel, at: $1) }
    schedule(.rejoin(place, run: run), in: prng.duration(.milliseconds(10), .seconds(6)))
  }

  mutating func rejoin(_ place: Int, run: Int) {
    guard nodes[place].run == run, nodes[place].node != nil else { return }
    guard !isCallEnding else {
      schedule(.rejoin(place, run: run), in: .milliseconds(500))
      return
    }
    note(nodes[place].label, "returns")
    join(place)
  }

  // MARK: The end of all faults

  /// Datagrams pass again. Whoever is away now stays away or is back soon.
  mutating func calm() {
    isCalm = true
    isCut = false
    blockedDirections = 0
    note("--", "calm")
    network.heal()
    for sender in nodes.indices {
      for receiver in nodes.indices where sender != receiver {
        network.setConditions(
          plan.calmConditions(&prng), from: nodes[sender].address, to: nodes[receiver].address)
      }
    }
  }
}
