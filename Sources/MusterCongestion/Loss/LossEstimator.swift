import MusterBase

/// Limits the estimate where packets are lost although no queue grows, and tells loss that a lower
/// rate would avoid from loss that it would not ("loss-based BWE v2" in WebRTC).
///
/// The candidates for the limit are the present one, a little more and a little less, what arrives,
/// and what the delay allows; the one under which the observations are most likely is taken.
package struct LossEstimator: Sendable {
  package enum State: Equatable, Sendable {
    /// Losses allow all that the delay does.
    case delayLimited
    case increasing
    case decreasing
  }

  /// The least duration of an observation.
  static let interval = Duration.milliseconds(250)
  /// The number of observations, and the weight of each against the next one.
  static let window = 15
  static let aging = 0.9
  /// The observations without which nothing is limited.
  static let required = 3
  static let candidates = [1.02, 1, 0.95]
  /// The average loss above which a path is not probed, and the limit is at once `balance` divided
  /// by what exceeds it.
  static let tolerated = 0.05
  static let balance = DataRate(kbps: 100)
  /// A limit that rises again is at most this many times the acknowledged rate, the lower number if
  /// it is near to the rate of the last hold.
  static let rampUp = (free: 1.5, held: 1.2)
  static let nearHold = 1.3
  /// The growth in each `growthWindow`.
  static let growth = 1.3
  static let growthWindow = Duration.milliseconds(300)
  /// The times for which the limit is held after a decrease: twice as long each time.
  static let hold = (first: Duration.milliseconds(300), longest: Duration.seconds(60))

  private struct Hold {
    var rate: DataRate
    var until: Instant
  }

  package private(set) var state = State.delayLimited
  /// The limit; nil while nothing is limited.
  package private(set) var limit: DataRate?

  private let least: DataRate
  private var model: LossModel?
  /// Oldest first.
  private var observations = RingBuffer<LossObservation>(capacity: window)
  private var partial = LossObservation()
  private var partialUntil: Instant?
  /// The time to which the last observation extends, on which all times below are counted.
  private var observedAt: Instant?
  private var lastHold: Hold?
  private var nextHold = hold.first
  private var ceiling: (rate: DataRate, since: Instant)?

  /// Limits nothing to less than `least`.
  package init(least: DataRate) { self.least = least }

  /// The average loss of the observations, by bytes, without the least and the most lossy one if
  /// there are more than three; 0 without observations.
  package var averageLoss: Double {
    guard !observations.isEmpty else { return 0 }
    var (bytes, lost) = (0.0, 0.0)
    var (least, most) = (0, 0)
    for index in 0..<observations.count {
      if observations[index].lossRatio < observations[least].lossRatio { least = index }
      if observations[index].lossRatio >= observations[most].lossRatio { most = index }
    }
    for (index, weighted) in weightedObservations.enumerated() {
      if observations.count > Self.required, index == least || index == most { continue }
      bytes += weighted.weight * Double(weighted.0.bytes)
      lost += weighted.weight * Double(weighted.0.lostBytes)
    }
    return bytes > 0 ? lost / bytes : 0
  }

  /// The least loss of the last `required` observations; 0 before there are as many.
  package var lastingLoss: Double {
    guard observations.count >= Self.required else { return 0 }
    let last = observations.count - Self.required..<observations.count
    return last.map { observations[$0].lossRatio }.min() ?? 0
  }

  /// Takes the packets of a report, the estimate of the delay, and the acknowledged rate.
  package mutating func update(
    _ results: [PacketResult], delayEstimate: DataRate, acknowledged: DataRate?,
    isApplicationLimited: Bool
  ) {
    guard let observedAt = observe(results) else { return }
    guard observations.count >= Self.required else { return }
    fit(
      delayEstimate: delayEstimate, acknowledged: acknowledged,
      isApplicationLimited: isApplicationLimited)
    conclude(delayEstimate: delayEstimate, acknowledged: acknowledged, at: observedAt)
  }

  /// Whether so much is lost that a probe would only add to it.
  package var isLossy: Bool { averageLoss > Self.tolerated }

  /// Takes the result of a probe, which a path that loses little has carried: the limit is no
  /// lower. Packets that are sent below the limit, as by an application that is limited to it, say
  /// nothing about it.
  package mutating func probed(_ rate: DataRate) {
    guard state != .delayLimited, !isLossy, var model, model.limit < rate else { return }
    model.limit = rate
    self.model = model
    (limit, lastHold, nextHold, ceiling) = (rate, nil, Self.hold.first, nil)
  }

  // MARK: Observations

  /// Adds results; returns the new `observedAt` if they complete an observation.
  private mutating func observe(_ results: [PacketResult]) -> Instant? {
    guard let last = results.last?.sentAt else { return nil }
    for result in results {
      switch result.fate {
      case .arrived: partial.bytes += result.bytes
      case .lost:
        partial.bytes += result.bytes
        partial.lostBytes += result.bytes
      case .arrivedLate: partial.lostBytes = max(partial.lostBytes - result.bytes, 0)
      }
    }
    let start = observedAt ?? results[0].sentAt
    let until = max(partialUntil ?? last, last)
    partialUntil = until
    observedAt = start
    guard until - start >= Self.interval else { return nil }
    partial.rate = DataRate(bytes: Double(partial.bytes), over: until - start)
    observations.append(partial)
    partial = LossObservation()
    observedAt = until
    return until
  }

  private var weightedObservations: [(LossObservation, weight: Double)] {
    var weight = 1.0
    var weighted: [(LossObservation, weight: Double)] = []
    for index in (0..<observations.count).reversed() {
      weighted.append((observations[index], weight))
      weight *= Self.aging
    }
    return weighted.reversed()
  }

  // MARK: The limit

  /// Chooses the most likely candidate.
  private mutating func fit(
    delayEstimate: DataRate, acknowledged: DataRate?, isApplicationLimited: Bool
  ) {
    let current = model ?? LossModel(limit: delayEstimate, inherentLoss: 0.01)
    let weighted = weightedObservations
    let loss = averageLoss
    var limits = Self.candidates.map { current.limit * $0 }
    if let acknowledged, !isApplicationLimited { limits.append(acknowledged) }
    if delayEstimate > current.limit { limits.append(delayEstimate) }
    var best: (model: LossModel, score: Double)?
    for limit in limits {
      let most = state == .delayLimited ? limit : ceiling?.rate ?? limit
      var candidate = current
      candidate.limit = min(limit, max(current.limit, most))
      candidate.fitInherentLoss(to: weighted)
      let score = candidate.score(of: weighted, averageLoss: loss)
      if best.map({ score > $0.score }) ?? true { best = (candidate, score) }
    }
    guard var next = best?.model else { return }
    if loss > next.inherentLoss, next.limit > current.limit { next.limit = current.limit }
    if state != .delayLimited, next.limit > current.limit, let acknowledged {
      let isHeld = lastHold.map { acknowledged < $0.rate * Self.nearHold } ?? false
      let most = acknowledged * (isHeld ? Self.rampUp.held : Self.rampUp.free)
      next.limit = max(current.limit, min(next.limit, most))
    }
    model = next
  }

  /// Bounds the limit, and says what it does.
  private mutating func conclude(
    delayEstimate: DataRate, acknowledged: DataRate?, at now: Instant
  ) {
    guard var model else { return }
    let excess = averageLoss - Self.tolerated
    let most = excess > 0 ? min(Self.balance * (1 / excess), model.limit) : model.limit
    var bounded = max(min(most, delayEstimate), least)
    // What arrives is carried, whatever is lost beside it.
    if let acknowledged { bounded = max(bounded, min(acknowledged, delayEstimate)) }
    model.limit = min(model.limit, max(bounded, most))
    self.model = model

    if bounded >= delayEstimate {
      (state, limit, lastHold, nextHold, ceiling) = (.delayLimited, nil, nil, Self.hold.first, nil)
      return
    }
    if state == .decreasing, let lastHold, lastHold.until > now {
      limit = min(lastHold.rate, bounded)
      return
    }
    let isIncreasing =
      state != .delayLimited
      && (limit.map { bounded > $0 || bounded == $0 && state == .increasing } ?? false)
    if isIncreasing {
      state = .increasing
    } else {
      if state != .decreasing {
        lastHold = Hold(rate: bounded, until: now + nextHold)
        nextHold = min(nextHold * 2, Self.hold.longest)
      }
      state = .decreasing
    }
    limit = bounded
    if ceiling.map({ now - $0.since > Self.growthWindow }) ?? true {
      ceiling = (max(model.limit * Self.growth, least), now)
    }
  }
}
