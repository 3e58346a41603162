import MusterBase

/// The kinds of faults that a simulation injects.
public enum Fault: String, CaseIterable, Sendable {
  /// Long and variable delay, different in each direction.
  case delay
  case loss, bursts, duplication, reordering, corruption
  /// A bottleneck with a short queue.
  case rate
  /// A partition of the network into groups that cannot reach each other.
  case partition
  /// Total loss in one direction between two nodes.
  case oneway
  /// A process crashes and restarts from its disk with a new boot id.
  case crash
  /// A crash that also destroys everything on the disk except the identity.
  case forget
  /// A crash that also destroys the identity.
  case amnesia
  /// A node leaves the channel and rejoins with the same boot id.
  case leave
  /// The wall clock of a host jumps.
  case clock
  /// An attacker without keys sends noise, and replays recorded datagrams intact or altered.
  case attack
  /// Disk writes are slow, and some fail.
  case disk
  /// A node that enters the channel finds the others late.
  case late
}

/// The choice of faults for a run.
public enum FaultChoice: Equatable, Sendable {
  case none
  /// Each fault with a probability of one half, and with a strength drawn from the seed.
  case swarm
  case only([Fault])
}

/// The strength of each fault in one run.
///
/// This is swarm testing: a run omits about half of the faults and varies the strength of the
/// others, because runs with a little of every fault rarely reach corner cases (Groce et al., ISSTA
/// 2012).
struct FaultPlan: Sendable {
  /// The strengths in the order of `Fault.allCases`, from 0 (off) to 1 (strongest).
  private let strengths: [Double]

  init(_ choice: FaultChoice, _ prng: inout PRNG) {
    strengths = Fault.allCases.map { fault in
      let isOn = prng.chance(0.5)
      let draw = prng.unit()
      // The cube makes most faults weak and a few extreme.
      let strength = 0.03 + 0.97 * draw * draw * draw
      switch choice {
      case .none: return 0
      case .swarm: return isOn ? strength : 0
      case .only(let faults): return faults.contains(fault) ? strength : 0
      }
    }
  }

  var faults: [Fault] {
    zip(Fault.allCases, strengths).filter { $0.1 > 0 }.map { $0.0 }
  }

  func strength(_ fault: Fault) -> Double {
    Fault.allCases.firstIndex(of: fault).map { strengths[$0] } ?? 0
  }

  func isOn(_ fault: Fault) -> Bool { strength(fault) > 0 }

  /// True if the run has no fault that can look like the crash of a node.
  var isGentle: Bool {
    let harsh: [Fault] = [
      .bursts, .rate, .partition, .oneway, .crash, .forget, .amnesia, .leave,
    ]
    return !harsh.contains(where: isOn)
  }

  /// The duration of an outage: usually shorter than the 10 s for which a call waits for an absent
  /// initiator (`Succession.grace`), sometimes longer.
  func outage(_ prng: inout PRNG) -> Duration {
    let isLong = prng.chance(0.2)
    return isLong
      ? prng.duration(.seconds(9), .seconds(18)) : prng.duration(.milliseconds(50), .seconds(7))
  }

  /// The time for which a node that enters the channel reaches nobody; nil if it does at once.
  func lateness(_ prng: inout PRNG) -> Duration? {
    guard isOn(.late), prng.chance(0.5) else { return nil }
    return prng.duration(.milliseconds(300), .seconds(8))
  }

  /// The path conditions in one direction between two nodes during the fault phase.
  func conditions(_ prng: inout PRNG) -> PathConditions {
    var conditions = healedConditions(&prng)
    conditions.loss = 0.4 * strength(.loss) * prng.unit()
    conditions.burstStart = 0.03 * strength(.bursts) * prng.unit()
    conditions.burstEnd = 0.05 + 0.3 * prng.unit()
    conditions.duplication = 0.5 * strength(.duplication)
    conditions.reordering = 0.5 * strength(.reordering) * prng.unit()
    conditions.reorderingDelay = prng.duration(.milliseconds(2), .milliseconds(150))
    conditions.corruption = 0.3 * strength(.corruption) * prng.unit()
    if isOn(.rate) {
      conditions.kilobitsPerSecond = 80 + Int(2000 * (1 - strength(.rate)))
      conditions.queueLimit = prng.duration(.milliseconds(50), .milliseconds(500))
    }
    return conditions
  }

  /// The path conditions after the fault phase: datagrams may be delayed or duplicated, but not
  /// lost.
  func healedConditions(_ prng: inout PRNG) -> PathConditions {
    var conditions = PathConditions()
    conditions.delay = prng.duration(.microseconds(100), .milliseconds(1))
    if isOn(.delay) {
      conditions.delay += Duration.milliseconds(200).scaled(by: strength(.delay) * prng.unit())
      conditions.jitter = Duration.milliseconds(80).scaled(by: strength(.delay) * prng.unit())
    }
    conditions.duplication = 0.1 * strength(.duplication)
    return conditions
  }

  /// The behaviour of disks during the fault phase.
  var diskConditions: Disk.Conditions {
    guard isOn(.disk) else { return Disk.Conditions() }
    return Disk.Conditions(
      longestDelay: Duration.seconds(1).scaled(by: strength(.disk)),
      failures: 0.3 * strength(.disk))
  }

  /// The interval until the next occurrence of a recurring fault; nil when the fault is off.
  func pause(before fault: Fault, _ prng: inout PRNG) -> Duration? {
    let strength = strength(fault)
    guard strength > 0 else { return nil }
    let mean: Duration =
      switch fault {
      case .partition, .oneway: .seconds(3)
      case .crash, .leave: .seconds(2)
      case .forget, .amnesia: .seconds(4)
      case .clock: .seconds(1)
      case .attack: .milliseconds(100)
      default: .seconds(1)
      }
    return prng.duration(.milliseconds(50), mean.scaled(by: 2 / (0.3 + 0.7 * strength)))
  }
}
