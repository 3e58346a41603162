import MusterBase

/// The packets of a time, and how many of their bytes were lost.
package struct LossObservation: Equatable, Sendable {
  package var bytes: Int
  package var lostBytes: Int
  /// The rate at which they were sent.
  package var rate: DataRate

  package init(bytes: Int = 0, lostBytes: Int = 0, rate: DataRate = .zero) {
    self.bytes = bytes
    self.lostBytes = lostBytes
    self.rate = rate
  }

  var lossRatio: Double { bytes > 0 ? Double(lostBytes) / Double(bytes) : 0 }
}

/// A model of a path on which packets are lost: beyond `limit` all of them, and of the others a
/// share, whatever the rate ("channel parameters" in WebRTC).
package struct LossModel: Equatable, Sendable {
  /// The rate that the path carries.
  package var limit: DataRate
  /// The share that is lost below the limit, as on a wireless link.
  package var inherentLoss: Double

  package init(limit: DataRate, inherentLoss: Double) {
    self.limit = limit
    self.inherentLoss = inherentLoss
  }

  /// The least inherent loss; the most is 5 %, and the share that 100 kbit/s are of the limit, so
  /// that a slow path is not called lossy for a few packets.
  static let leastInherentLoss = 0.001
  static func mostInherentLoss(at limit: DataRate) -> Double {
    min(0.05 + 100 / max(limit.kbps, 1), 1)
  }

  /// The probability that a packet is lost at a rate, strictly between 0 and 1.
  func lossProbability(at rate: DataRate) -> Double {
    var probability = inherentLoss
    if rate > limit {
      probability += (1 - inherentLoss) * (rate.kbps - limit.kbps) / rate.kbps
    }
    return min(max(probability, 1e-6), 1 - 1e-6)
  }

  /// Moves the inherent loss towards what makes the observations most likely: one damped step of
  /// Newton's method on the logarithm of the likelihood.
  package mutating func fitInherentLoss(to observations: [(LossObservation, weight: Double)]) {
    var (first, second) = (0.0, 0.0)
    for (observation, weight) in observations {
      let loss = lossProbability(at: observation.rate)
      let lost = Double(observation.lostBytes) / 1_000
      let arrived = Double(observation.bytes) / 1_000 - lost
      first += weight * (lost / loss - arrived / (1 - loss))
      second -= weight * (lost / (loss * loss) + arrived / ((1 - loss) * (1 - loss)))
    }
    if second < 0 { inherentLoss -= 0.75 * first / second }
    inherentLoss = min(
      max(inherentLoss, Self.leastInherentLoss), Self.mostInherentLoss(at: limit))
  }

  /// The logarithm of the likelihood of the observations, with a bonus for a high limit. Rates
  /// below the limit say nothing about it, so that without the bonus any limit above would be as
  /// good; at an average loss of more than 35 % the bonus becomes a malus. In WebRTC that is 20 %,
  /// so that the limit falls and falls on a path that loses a fifth of its packets at any rate.
  func score(
    of observations: [(LossObservation, weight: Double)], averageLoss: Double
  ) -> Double {
    let distance = 0.35 - averageLoss
    let preference = distance / (0.002 + abs(distance))
    let bonus = preference * (0.0002 * limit.kbps + 0.02 * Math.log(1 + limit.kbps))
    var score = 0.0
    for (observation, weight) in observations {
      let loss = lossProbability(at: observation.rate)
      let lost = Double(observation.lostBytes) / 1_000
      let all = Double(observation.bytes) / 1_000
      score += weight * (lost * Math.log(loss) + (all - lost) * Math.log(1 - loss) + bonus * all)
    }
    return score
  }
}
