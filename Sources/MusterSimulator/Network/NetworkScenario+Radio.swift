import MusterBase

/// The scenarios of links by radio: Wi-Fi and mobile networks.
extension NetworkScenario {
  /// A steady station, and one that walks away from the access point and back. Retransmissions of
  /// the link layer turn loss into jitter, except for short bursts.
  static let wifi = wifi(
    "wifi", "a steady station and one that walks away and back every 20 s, jitter and bursts",
    audioFirst: false)

  /// The same where the marks of packets count.
  static let wmm = wifi(
    "wmm", "the same with Wi-Fi Multimedia: audio has a queue of its own, which goes first",
    audioFirst: true)

  private static func wifi(
    _ name: String, _ summary: String, audioFirst: Bool
  ) -> NetworkScenario {
    func station(_ rate: Int) -> PathConditions {
      var conditions = link(rate, delay: .milliseconds(2), queue: .milliseconds(200))
      conditions.audioFirst = audioFirst
      conditions.jitter = .milliseconds(15)
      conditions.burstStart = 0.001
      conditions.burstEnd = 0.3
      return conditions
    }
    let walk = [8000, 4000, 2000, 1000, 400, 150, 400, 1000, 2000, 4000]
    var fading: [Step] = []
    for second in 0..<60 {
      fading.append(Step(at: .seconds(second), conditions: station(walk[second / 2 % walk.count])))
    }
    var participants = pair(up: always(station(8000)), video: large)
    participants[0].down = always(station(8000))
    participants[1].up = fading
    participants[1].down = fading
    return NetworkScenario(name, summary, seconds: 60, participants)
  }

  /// A random walk of the rate, twice a second, over a link with deep buffers.
  static let lte: NetworkScenario = {
    func cell(seed: UInt64) -> [Step] {
      var prng = PRNG(seed: seed)
      var rate = 2000.0
      return (0..<120).map { index in
        var conditions = link(
          Int(rate), delay: .milliseconds(30), queue: .milliseconds(1000))
        conditions.jitter = .milliseconds(8)
        rate = min(max(rate * (0.65 + 0.75 * prng.unit()), 300), 8000)
        return Step(at: .milliseconds(500 * index), conditions: conditions)
      }
    }
    var participants = pair(up: [], video: large)
    participants[0].up = cell(seed: 1)
    participants[0].down = cell(seed: 2)
    return NetworkScenario(
      "lte", "a cell whose rate wanders between 300 kbit/s and 8 Mbit/s, queue of 1 s",
      seconds: 60, participants)
  }()

  /// A laptop that uses a phone: narrower up than down, deep buffers, and two cells that hand it
  /// over late.
  static let tether: NetworkScenario = {
    func cell(_ rate: Int) -> [Step] {
      var conditions = link(rate, delay: .milliseconds(45), queue: .milliseconds(800))
      conditions.jitter = .milliseconds(5)
      var gone = conditions
      gone.loss = 1
      return [
        Step(at: .zero, conditions: conditions), Step(at: .seconds(20), conditions: gone),
        Step(at: .seconds(21), conditions: conditions), Step(at: .seconds(40), conditions: gone),
        Step(at: .milliseconds(41_500), conditions: conditions),
      ]
    }
    var participants = pair(up: [])
    participants[0].up = cell(1200)
    participants[0].down = cell(3000)
    return NetworkScenario(
      "tether", "1.2 Mbit/s up and 3 down, 45 ms, queue of 800 ms, gone for 1 and 1.5 s",
      seconds: 60, participants)
  }()

  /// Two stations of a busy access point. The rate of each changes twice a second among those of
  /// 802.11n with one antenna (IEEE 802.11-2020, table 19-27), and roaming interrupts it for 50,
  /// 150 and 300 ms.
  static let airtime: NetworkScenario = {
    func station(seed: UInt64) -> [Step] {
      var prng = PRNG(seed: seed)
      let rates = [13_000, 26_000, 39_000, 52_000, 65_000]
      var steps: [Step] = []
      for index in 0..<120 {
        var conditions = link(
          rates[prng.below(rates.count)], delay: .milliseconds(1), queue: .milliseconds(250))
        conditions.contention = Contention(wait: .milliseconds(6), failures: 0.2)
        steps.append(Step(at: .milliseconds(500 * index), conditions: conditions))
      }
      return steps
    }
    func roams(_ steps: [Step], at times: [(milliseconds: Int, gap: Int)]) -> [Step] {
      var all = steps
      for time in times {
        guard let before = all.lastIndex(where: { $0.at <= .milliseconds(time.milliseconds) })
        else { continue }
        var gone = all[before].conditions
        gone.loss = 1
        let back = Step(
          at: .milliseconds(time.milliseconds + time.gap), conditions: all[before].conditions)
        all.insert(
          contentsOf: [Step(at: .milliseconds(time.milliseconds), conditions: gone), back],
          at: before + 1)
      }
      return all
    }
    var participants = pair(up: [], video: large)
    for index in participants.indices {
      let gaps = [(15_100 + 20_000 * index, 50), (20_100 + 20_000 * index, 150)]
      let last = [(30_100 + 20_000 * index, 300)]
      participants[index].up = roams(station(seed: UInt64(2 * index + 1)), at: gaps + last)
      participants[index].down = roams(station(seed: UInt64(2 * index + 2)), at: gaps + last)
    }
    return NetworkScenario(
      "airtime", "two stations of a busy access point that contend for the medium, and roam",
      seconds: 60, participants)
  }()

  /// A station that walks out of range and back.
  static let walk: NetworkScenario = {
    let ladder = [
      (0, 20_000), (12, 10_000), (16, 4000), (20, 1500), (23, 500), (26, 200), (28, nil),
      (31, 200), (33, 500), (36, 1500), (39, 4000), (43, 10_000), (47, 20_000),
    ]
    let fading = ladder.map { second, rate in
      var conditions = link(rate ?? 200, delay: .milliseconds(2), queue: .milliseconds(250))
      conditions.jitter = .milliseconds(5)
      if rate == nil { conditions.loss = 1 }
      return Step(at: .seconds(second), conditions: conditions)
    }
    var participants = pair(up: [])
    participants[1].up = fading
    participants[1].down = fading
    return NetworkScenario(
      "walk", "a station that walks away from 20 Mbit/s out of range, for 3 s, and back",
      seconds: 60, participants)
  }()
}
