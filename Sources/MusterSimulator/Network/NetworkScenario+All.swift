import MusterBase

/// The named scenarios.
extension NetworkScenario {
  /// All scenarios, in the order in which they are reported.
  public static let all: [NetworkScenario] =
    [narrow600, narrow250, narrow64, cuts250, uneven, far, threeReceivers]
    + [dip, stairs, capacityScript]
    + [randomLoss(percent: 10), burstLoss(percent: 10)]
    + [randomLoss(percent: 20), burstLoss(percent: 20)] + rfc8867
    + [twoFlows, wifi, wmm, lte, tether, airtime, walk]
    + [neighbour(queue: 100), neighbour(queue: 400), cubic]

  /// The scenario of that name; nil if there is none.
  public static func named(_ name: String) -> NetworkScenario? { all.first { $0.name == name } }

  static let small = VideoSize(width: 640, height: 360)
  static let large = VideoSize(width: 1280, height: 720)

  /// A constant rate, with a queue of 300 ms where nothing else is said, as in RFC 8867.
  static func link(
    _ kilobitsPerSecond: Int? = nil, delay: Duration = .zero, queue: Duration = .milliseconds(300)
  ) -> PathConditions {
    var conditions = PathConditions.ideal
    conditions.kilobitsPerSecond = kilobitsPerSecond
    conditions.delay = delay
    conditions.queueLimit = queue
    return conditions
  }

  /// A link whose rate changes: pairs of the time in seconds and the rate in kbit/s.
  private static func steps(
    _ rates: [(at: Int, kilobitsPerSecond: Int)], delay: Duration = .zero,
    queue: Duration = .milliseconds(300)
  ) -> [Step] {
    rates.map {
      Step(at: .seconds($0.at), conditions: link($0.kilobitsPerSecond, delay: delay, queue: queue))
    }
  }

  static func always(_ conditions: PathConditions) -> [Step] {
    [Step(at: .zero, conditions: conditions)]
  }

  /// Two participants with cameras and the same link into the network.
  static func pair(
    up: [Step], video: VideoSize = small, bitrate: Int? = nil
  ) -> [Participant] {
    ["anna", "berta"].map { name in
      var participant = Participant(name, video: video)
      participant.videoKilobitsPerSecond = bitrate
      participant.up = up
      return participant
    }
  }

  // MARK: Narrow links

  private static func narrow(_ rate: Int, _ summary: String) -> NetworkScenario {
    NetworkScenario(
      "narrow-\(rate)", summary, seconds: 60,
      pair(up: always(link(rate, delay: .milliseconds(20)))))
  }

  static let narrow600 = narrow(600, "600 kbit/s in both directions, 20 ms")
  static let narrow250 = narrow(250, "250 kbit/s in both directions, 20 ms")
  static let narrow64 = narrow(64, "64 kbit/s in both directions, 20 ms: room for audio only")

  /// Pictures with cuts, as films and street scenes have: the frame after one is a large one
  /// (`EncoderModel.cutFrames`).
  static let cuts250: NetworkScenario = {
    var participants = pair(up: always(link(250, delay: .milliseconds(20))))
    for index in participants.indices { participants[index].cuts = cutInterval }
    return NetworkScenario(
      "cuts-250", "250 kbit/s in both directions, 20 ms, cuts every 4 s", seconds: 60, participants)
  }()

  /// An access link like ADSL, whose two directions differ.
  static let uneven: NetworkScenario = {
    var participants = pair(up: [])
    participants[0].up = always(link(400, delay: .milliseconds(20)))
    participants[0].down = always(link(4000, delay: .milliseconds(20)))
    for index in participants.indices { participants[index].cuts = cutInterval }
    return NetworkScenario(
      "uneven", "400 kbit/s up and 4 Mbit/s down, 20 ms, cuts every 4 s", seconds: 60, participants)
  }()

  /// Another continent, by a path that loses a little.
  static let far: NetworkScenario = {
    var conditions = link(3000, delay: .milliseconds(150))
    conditions.loss = 0.01
    var participants = pair(up: always(conditions))
    for index in participants.indices { participants[index].cuts = cutInterval }
    return NetworkScenario(
      "far", "3 Mbit/s, 300 ms of round trip, 1 % of packets lost, cuts every 4 s", seconds: 60,
      participants)
  }()

  private static let cutInterval = Duration.seconds(4)

  static let threeReceivers: NetworkScenario = {
    var participants = [Participant("anna", video: large)]
    for (name, rate) in [("slow", 200), ("medium", 900), ("free", nil)] as [(String, Int?)] {
      var receiver = Participant(name)
      // The audio of the others alone would fill the slow link.
      receiver.speaks = false
      receiver.down = always(link(rate, delay: .milliseconds(20)))
      participants.append(receiver)
    }
    return NetworkScenario(
      "three-receivers", "one 720p sender; receivers behind 200 and 900 kbit/s, and a free one",
      seconds: 60, participants)
  }()

  // MARK: Changing links

  static let dip = NetworkScenario(
    "dip", "2 Mbit/s, 400 kbit/s from 20 to 30 s, then 2 Mbit/s again", seconds: 60,
    pair(up: steps([(0, 2000), (20, 400), (30, 2000)], delay: .milliseconds(20))))

  static let stairs = NetworkScenario(
    "stairs", "1500, 300, 2000, 200, 1500 and 700 kbit/s for 10 s each, 20 ms", seconds: 60,
    pair(
      up: steps(
        [(0, 1500), (10, 300), (20, 2000), (30, 200), (40, 1500), (50, 700)],
        delay: .milliseconds(20), queue: .milliseconds(250))))

  /// The capacities and delays of libwebrtc's test of its controller
  /// (`goog_cc_network_control_unittest.cc`, UpdatesTargetRateBasedOnLinkCapacity).
  static let capacityScript: NetworkScenario = {
    var sender = Participant("anna", video: large)
    sender.up =
      steps([(0, 500), (25, 800)], delay: .milliseconds(100))
      + steps([(45, 100)], delay: .milliseconds(200))
    var receiver = Participant("berta")
    receiver.up = always(link(delay: .milliseconds(100)))
    return NetworkScenario(
      "capacity-script", "500, 800 and 100 kbit/s from 0, 25 and 45 s, 100 to 200 ms",
      seconds: 75, [sender, receiver])
  }()

  // MARK: Loss

  /// Packets are lost in both directions, each alone.
  private static func randomLoss(percent: Int) -> NetworkScenario {
    var conditions = link(delay: .milliseconds(20))
    conditions.loss = Double(percent) / 100
    return NetworkScenario(
      "random-loss-\(percent)", "\(percent) % of packets lost at random in both directions, 20 ms",
      seconds: 60, pair(up: always(conditions), bitrate: 1000))
  }

  /// Packets are lost in both directions, in bursts of 4 on average.
  private static func burstLoss(percent: Int) -> NetworkScenario {
    var conditions = link(delay: .milliseconds(20))
    let share = Double(percent) / 100
    conditions.burstEnd = 0.25
    conditions.burstStart = 0.25 * share / (1 - share)
    return NetworkScenario(
      "burst-loss-\(percent)",
      "\(percent) % of packets lost in bursts of 4 in both directions, 20 ms", seconds: 60,
      pair(up: always(conditions), bitrate: 1000))
  }

  // MARK: RFC 8867

  /// The test cases of RFC 8867, sections 5.1 to 5.6, with 50 ms each way and a queue of 300 ms, as
  /// in their implementation for ns-3 (github.com/cisco/ns3-rmcat).
  static let rfc8867: [NetworkScenario] = [
    sharedBottleneck(
      "5.1", "variable capacity, one flow", seconds: 100, senders: 1,
      [(0, 1000), (40, 2500), (60, 600), (80, 1000)]),
    sharedBottleneck(
      "5.2", "variable capacity, two flows", seconds: 125, senders: 2,
      [(0, 4000), (25, 2000), (50, 3500), (75, 1000), (100, 2000)]),
    congestedFeedback,
    sharedBottleneck(
      "5.4", "three flows that start 20 s apart share 3.5 Mbit/s", seconds: 120, senders: 3,
      [(0, 3500)], apart: 20),
    roundTripFairness,
    {
      var participants = receivers(behind: [(0, 2000)], senders: 1)
      participants[1].joinsAt = .seconds(5)
      return NetworkScenario(
        "rfc8867-5.6", "a flow that starts at 5 s shares 2 Mbit/s with TCP", seconds: 120,
        participants, tcp: TCPFlow(to: 0, startsAt: .zero))
    }(),
  ]

  /// A receiver without a camera, then senders who do not watch one another.
  private static func receivers(
    behind rates: [(at: Int, kilobitsPerSecond: Int)], senders: Int, apart: Int = 0
  ) -> [Participant] {
    var receiver = Participant("receiver")
    receiver.down = steps(rates, delay: .milliseconds(50))
    receiver.up = always(link(delay: .milliseconds(50)))
    return [receiver]
      + (1...senders).map { number in
        var sender = Participant("sender\(number)", video: large)
        sender.joinsAt = .seconds((number - 1) * apart)
        sender.watches = false
        return sender
      }
  }

  private static func sharedBottleneck(
    _ section: String, _ summary: String, seconds: Int, senders: Int,
    _ rates: [(at: Int, kilobitsPerSecond: Int)], apart: Int = 0
  ) -> NetworkScenario {
    NetworkScenario(
      "rfc8867-\(section)", summary, seconds: seconds,
      receivers(behind: rates, senders: senders, apart: apart))
  }

  private static let congestedFeedback: NetworkScenario = {
    var participants = pair(up: [], video: large)
    let delay = Duration.milliseconds(50)
    participants[0].up = steps([(0, 2000), (20, 1000), (40, 500), (60, 2000)], delay: delay)
    participants[1].up = steps([(0, 2000), (35, 800), (70, 2000)], delay: delay)
    return NetworkScenario(
      "rfc8867-5.3", "variable capacity in both directions, congested feedback", seconds: 100,
      participants)
  }()

  private static let roundTripFairness: NetworkScenario = {
    var participants = receivers(behind: [(0, 4000)], senders: 5, apart: 10)
    participants[0].down = steps([(0, 4000)])
    participants[0].up = []
    for (index, delay) in [10, 25, 50, 100, 150].enumerated() {
      participants[index + 1].up = always(link(delay: .milliseconds(delay)))
      participants[index + 1].down = always(link(delay: .milliseconds(delay)))
    }
    return NetworkScenario(
      "rfc8867-5.5", "five flows of 10 to 150 ms that start 10 s apart share 4 Mbit/s",
      seconds: 300, participants)
  }()

  static let twoFlows = NetworkScenario(
    "two-flows", "two flows, the second from 10 s on, share 2 Mbit/s", seconds: 60,
    receivers(behind: [(0, 2000)], senders: 2, apart: 10))

  // MARK: Other traffic

  /// A download by the same access point, whose queue it fills: home routers were measured to hold
  /// back 100 to 400 ms.
  static func neighbour(queue: Int) -> NetworkScenario {
    var participants = pair(up: [])
    participants[1].down = always(
      link(20_000, delay: .milliseconds(5), queue: .milliseconds(queue)))
    participants[1].up = always(link(20_000, delay: .milliseconds(5)))
    return NetworkScenario(
      "neighbour-\(queue)",
      "a TCP download from 15 to 45 s fills the access point's queue of \(queue) ms, 20 Mbit/s",
      seconds: 60, participants,
      tcp: TCPFlow(to: 1, startsAt: .seconds(15), endsAt: .seconds(45)))
  }

  static let cubic: NetworkScenario = {
    var participants = pair(up: [], video: large)
    participants[1].down = always(link(2000, delay: .milliseconds(20)))
    participants[1].up = always(link(delay: .milliseconds(20)))
    return NetworkScenario(
      "cubic", "a TCP CUBIC flow joins the call on 2 Mbit/s at 10 s", seconds: 70, participants,
      tcp: TCPFlow(to: 1, startsAt: .seconds(10)))
  }()
}
