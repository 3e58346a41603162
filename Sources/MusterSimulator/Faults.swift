import MusterBase

/// The kinds of faults that a simulation injects.
public enum Fault: String, CaseIterable, Sendable {
  /// Long and uneven delay, different in each direction.
  case delay
  case loss, bursts, duplication, reordering, corruption
  /// A bottleneck with a short queue.
  case rate
  /// Islands that do not hear each other.
  case partition
  /// Nothing passes in one direction between two nodes.
  case oneway
  /// A process dies and starts again with a new boot id and what is on its disk.
  case crash
  /// The same, and all that it remembered is gone but for its identity.
  case forget
  /// The same, and its identity is gone, too.
  case amnesia
  /// A node leaves the channel and comes back within one boot.
  case leave
  /// Wall time jumps.
  case clock
  /// An attacker without keys sends noise, and recorded datagrams, intact or altered.
  case attack
  /// Writes to the disks take long, and some fail.
  case disk
}

/// Which faults a run has.
public enum FaultChoice: Equatable, Sendable {
  case none
  /// Each with even chances, and with a strength drawn from the seed.
  case swarm
  case only([Fault])
}

/// How strong each fault of one run is.
///
/// Swarm testing: every seed has some faults not at all and the others very unevenly, since a run
/// that has a little of everything never gets into the corners (Groce et al., ISSTA 2012).
struct FaultPlan: Sendable {
  /// By the index of the fault among all cases; 0 is off, 1 the strongest.
  private let strengths: [Double]

  init(_ choice: FaultChoice, _ prng: inout PRNG) {
    strengths = Fault.allCases.map { fault in
      let isOn = prng.chance(0.5)
      let draw = prng.unit()
      // Cubed: mostly weak, now and then extreme.
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

  /// Whether nothing happens for which a node could rightly be taken for gone.
  var isGentle: Bool {
    let harsh: [Fault] = [
      .bursts, .rate, .partition, .oneway, .crash, .forget, .amnesia, .leave,
    ]
    return !harsh.contains(where: isOn)
  }

  /// How long something is out of order: mostly shorter than the grace that a call gives its
  /// initiator, and sometimes longer.
  func outage(_ prng: inout PRNG) -> Duration {
    let isLong = prng.chance(0.2)
    return isLong
      ? prng.duration(.seconds(7), .seconds(14)) : prng.duration(.milliseconds(50), .seconds(7))
  }

  /// What one direction between two nodes is like while there are faults.
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

  /// What it is like afterwards: datagrams pass, late and doubled as they may be.
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

  /// What disks are like while there are faults.
  var diskConditions: Disk.Conditions {
    guard isOn(.disk) else { return Disk.Conditions() }
    return Disk.Conditions(
      longestDelay: Duration.seconds(1).scaled(by: strength(.disk)),
      failures: 0.3 * strength(.disk))
  }

  /// Until a fault that comes now and then comes next; nil when it does not.
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
