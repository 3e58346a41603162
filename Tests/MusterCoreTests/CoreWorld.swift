import MusterBase
import MusterCore
import MusterCrypto
import MusterLink
import MusterSimulator
import MusterWire

/// Whole nodes on a virtual network and clock, all of them on one LAN; pairs may be cut apart.
struct CoreWorld {
  struct Place {
    var node: Node
    let address: Address
    var source: SyntheticSource
    /// All that came and went, in order.
    var received: [Flight] = []
    var sent: [Flight] = []
    /// Bytes that went to somebody the moment something came from another, with when.
    var passedOn: [(at: Instant, from: Address, to: Address, bytes: Int)] = []
    /// Pictures of others, by whose they are.
    var shown = PeerTable<LinkID, Int>()
  }

  struct Flight {
    let datagram: [UInt8]
    let from: Address
    let to: Address
    let arrivesAt: Instant

    var kind: DatagramKind? { DatagramKind(of: datagram) }
  }

  private(set) var places: [Place] = []
  private(set) var now = Instant.zero + .seconds(1000)
  /// One way.
  static let delay = Duration.milliseconds(10)
  /// Whether a datagram from one place arrives at another.
  var passes: (_ from: Int, _ to: Int, DatagramKind?) -> Bool = { _, _, _ in true }
  /// Bytes that each of a place's pictures has beside the source's own.
  var weight: (Int) -> Int = { _ in 0 }

  private let seed: UInt64
  private var flights: [Flight] = []
  private var nextPicture: Instant
  private var nextSound: Instant
  private var prng: PRNG

  private static let pictureInterval = Duration.milliseconds(
    1000 / SyntheticSource.framesPerSecond)
  private static let soundInterval = Duration.milliseconds(20)

  /// Nodes in the order of their ids, the same ones for every seed; all else differs.
  init(_ count: Int, seed: UInt64 = 1) {
    self.seed = seed
    prng = PRNG(seed: seed)
    nextPicture = now + Self.pictureInterval
    nextSound = now + Self.soundInterval
    let identities = (1...count).map { number -> Identity in
      var entropy = Entropy.seeded(UInt64(number))
      return Identity(generating: &entropy)
    }
    for (place, identity) in identities.sorted(by: { $0.id < $1.id }).enumerated() {
      var configuration = Node.Configuration()
      configuration.name = "\(Marker.text) \(place)"
      var node = Node(
        identity: identity, entropy: entropy(of: place), seed: jitter(of: place),
        configuration: configuration)
      node.setWallClock(millisecondsSince1970: 1_700_000_000_000, at: now)
      places.append(
        Place(
          node: node,
          address: Address(host: .v4(0x0A00_0001 + UInt32(place)), port: 4000),
          source: SyntheticSource(sender: UInt8(place), run: 1, layers: 1)))
      let layers = places[place].source.layers
      call(place) { $0.setSources(layers: layers, isPattern: false, hasAudio: true, at: $1) }
    }
  }

  private func entropy(of place: Int) -> Entropy { .seeded(seed &* 1000 &+ UInt64(place)) }
  private func jitter(of place: Int) -> UInt64 { seed &* 2000 &+ UInt64(place) }

  func id(_ place: Int) -> NodeID { places[place].node.id }

  /// Everyone enters the channel and its call.
  mutating func join(_ name: String, _ key: ChannelKey) {
    for place in places.indices {
      call(place) { $0.join(ChannelSetup(name: name, key: key), call: true, at: $1) }
    }
  }

  /// The neighbour through whom one's link to another leads.
  func relay(from place: Int, to other: Int, in channel: ChannelID) -> NodeID? {
    places[place].node.statistics().first {
      $0.link == LinkID(channel: channel, peer: id(other))
    }?.via
  }

  mutating func run(for duration: Duration) {
    let end = now + duration
    while let next = nextEvent, next <= end {
      now = max(now, next)
      deliver()
      if nextPicture <= now { takePictures() }
      if nextSound <= now { takeSound() }
      for place in places.indices {
        if let deadline = places[place].node.deadline, deadline <= now {
          call(place) { $0.tick(at: $1) }
        }
      }
    }
    now = end
  }

  private var nextEvent: Instant? {
    let arrivals = flights.map(\.arrivesAt).min()
    return places.reduce(soonest(arrivals, min(nextPicture, nextSound))) {
      soonest($0, $1.node.deadline)
    }
  }

  private mutating func deliver() {
    let due = flights.filter { $0.arrivesAt <= now }
    flights.removeAll { $0.arrivesAt <= now }
    for flight in due {
      for place in places.indices where places[place].address == flight.to {
        places[place].received.append(flight)
        let before = places[place].sent.count
        call(place) { $0.receive(flight.datagram, from: flight.from, at: $1) }
        for sent in places[place].sent[before...]
        where sent.to != flight.from && sent.kind == .data && flight.kind == .data {
          places[place].passedOn.append((now, flight.from, sent.to, sent.datagram.count))
        }
      }
    }
  }

  private mutating func takePictures() {
    nextPicture = now + Self.pictureInterval
    for place in places.indices {
      for var frame in places[place].source.frames(capturedAt: now, &prng) {
        frame.data += [UInt8](repeating: 7, count: weight(place))
        call(place) { $0.sendVideo(frame, at: $1) }
      }
    }
  }

  private mutating func takeSound() {
    nextSound = now + Self.soundInterval
    for place in places.indices {
      let sound = places[place].source.audio(capturedAt: now, level: 20)
      call(place) { $0.sendAudio(sound, at: $1) }
    }
  }

  private mutating func call(_ place: Int, _ body: (inout Node, Instant) -> [Node.Output]) {
    for output in body(&places[place].node, now) {
      switch output {
      case .send(let datagram, let to): send(datagram, from: place, to: to)
      case .broadcast(let datagram):
        for other in places.indices where other != place {
          send(datagram, from: place, to: places[other].address)
        }
      case .encode(let layers): places[place].source.encode(layers)
      case .encodeKeyframe(let layer): places[place].source.requestKeyframe(layer)
      case .show(_, let link, _):
        places[place].shown[link] = (places[place].shown[link] ?? 0) + 1
      default: break
      }
    }
  }

  private mutating func send(_ datagram: [UInt8], from place: Int, to address: Address) {
    let flight = Flight(
      datagram: datagram, from: places[place].address, to: address, arrivesAt: now + Self.delay)
    places[place].sent.append(flight)
    guard let other = places.firstIndex(where: { $0.address == address }),
      passes(place, other, flight.kind)
    else { return }
    flights.append(flight)
  }
}

extension CoreWorld {
  /// What a node's links open of what came to it: an engine with the same secrets and draws, to
  /// which the same happened. It holds for a node that only ever answered handshakes.
  func eyes(of place: Int, _ keys: [ChannelKey]) -> (engine: LinkEngine, seen: [Seen], same: Bool) {
    // As `Node` hands them out.
    var entropy = entropy(of: place)
    let bootID = entropy.u64()
    var prng = PRNG(seed: jitter(of: place))
    _ = (entropy.fork(), prng.next())
    var engine = LinkEngine(
      identity: places[place].node.identity, bootID: bootID, entropy: entropy.fork(),
      seed: prng.next())
    for key in keys { engine.open(key) }
    var seen: [Seen] = []
    var answers: [[UInt8]] = []
    for flight in places[place].received {
      for output in engine.receive(flight.datagram, from: flight.from, at: flight.arrivesAt) {
        switch output {
        case .delivered(let link, let payload): seen.append(Seen(link: link, payload: payload))
        case .send(let datagram, _) where DatagramKind(of: datagram) == .handshakeResponse:
          answers.append(datagram)
        default: break
        }
      }
    }
    let given = places[place].sent.filter { $0.kind == .handshakeResponse }.map(\.datagram)
    return (engine, seen, !given.isEmpty && given == answers)
  }

  struct Seen {
    let link: LinkID
    let payload: [UInt8]
  }
}
