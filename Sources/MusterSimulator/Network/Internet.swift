import MusterBase

/// Homes on one internet, each behind a router and a broadcast domain of its own, with the shape of
/// an engine: no clock, no chance but its seed.
///
/// All homes with a router have the same private addresses, as homes do: an address alone does not
/// say who is meant, the place where it is used does.
public struct Internet: Sendable {
  /// A datagram that arrives, with the sender as this host sees it.
  public struct Delivery: Equatable, Sendable {
    /// The UDP payload.
    public var datagram: [UInt8]
    /// Source address, translated by the sender's router unless both share a home.
    public var from: Address
    /// Index of the receiving host, as returned by `addHost`.
    public var host: Int
  }

  /// What became of datagrams.
  public struct Counters: Equatable, Sendable {
    /// Handed to the network; a broadcast counts once per receiver.
    public var sent: UInt64 = 0
    /// Arrived at a host.
    public var delivered: UInt64 = 0
    /// Dropped by the conditions of a path.
    public var lost: UInt64 = 0
    /// Stopped between two homes that have no path to each other.
    public var cut: UInt64 = 0
    /// Stopped by a router.
    public var filtered: UInt64 = 0
    /// To an address where no host is, or from one without a network.
    public var unroutable: UInt64 = 0
  }

  private struct Home: Sendable {
    let number: Int
    var nat: NAT
    /// How often the provider has given it another address.
    var renumbered: UInt32 = 0

    /// The part of an address that tells the home from others on the internet.
    static func network(_ number: Int) -> UInt32 { 0xC612_0000 + UInt32(number) << 8 }
    var network: UInt32 { Self.network(number) }
    /// Of addresses inside: those of the internet itself, or 192.168.1.0/24.
    var segment: UInt32 { nat.kind == .none ? network : 0xC0A8_0100 }
  }

  private struct Host: Sendable {
    /// Where it is plugged in; nil while it is on the way.
    var home: Int?
    var address: Address
  }

  private struct Flight: Sendable {
    let datagram: [UInt8]
    let from: Address
    let to: Address
    let home: Int
    /// Whether it comes from outside and has the router before it.
    let isFromOutside: Bool
  }

  /// Totals since the start, in datagrams.
  public private(set) var counters = Counters()
  private var homes: [Home] = []
  private var hosts: [Host] = []
  /// Row by row the paths from one home to all; those from a home to itself are its segment.
  private var paths: [Path] = []
  private var cuts: [Bool] = []
  private var inFlight = EventQueue<Flight>()
  private var prng: PRNG

  /// Homes without hosts.
  public init(homes kinds: [NATKind], conditions: PathConditions = .init(), seed: UInt64) {
    prng = PRNG(seed: seed)
    for (number, kind) in kinds.enumerated() {
      let outside = Address.Host.v4(Home.network(number) + 1)
      homes.append(Home(number: number, nat: NAT(kind, outside: outside, seed: prng.next())))
    }
    paths = Array(repeating: Path(conditions), count: kinds.count * kinds.count)
    cuts = Array(repeating: false, count: kinds.count * kinds.count)
  }

  // MARK: Who is where

  /// A new host with one port; returns its number.
  public mutating func addHost(port: UInt16, in home: Int) -> Int {
    hosts.append(Host(home: nil, address: Address(host: .v4(0), port: port)))
    move(hosts.count - 1, to: home)
    return hosts.count - 1
  }

  /// Plugs a host in at another home, where it gets the lowest address that is free.
  public mutating func move(_ host: Int, to home: Int) {
    hosts[host].home = nil
    let taken = hosts.filter { $0.home == home }.map(\.address.host)
    var address = homes[home].segment + 2
    while taken.contains(.v4(address)) { address += 1 }
    hosts[host].address.host = .v4(address)
    hosts[host].home = home
  }

  /// The address that a host has on its own network.
  public func address(of host: Int) -> Address { hosts[host].address }
  /// Index of the home that a host is attached to; nil while it is attached to none.
  public func home(of host: Int) -> Int? { hosts[host].home }
  /// The NAT type of a home's router.
  public func kind(of home: Int) -> NATKind { homes[home].nat.kind }
  /// Number of homes; their indices start at 0.
  public var homeCount: Int { homes.count }

  // MARK: Datagrams

  /// Sends one datagram, which passes the router if it is meant for another network.
  public mutating func send(
    _ datagram: [UInt8], from host: Int, to address: Address, at now: Instant
  ) {
    counters.sent += 1
    guard let home = hosts[host].home, case .v4(let ip) = address.host else {
      counters.unroutable += 1
      return
    }
    let own = hosts[host].address
    guard ip & 0xFFFF_FF00 != homes[home].segment else {
      let flight = Flight(
        datagram: datagram, from: own, to: address, home: home, isFromOutside: false)
      transmit(flight, from: home, at: now)
      return
    }
    guard let target = homes.firstIndex(where: { $0.network == ip & 0xFFFF_FF00 }) else {
      counters.unroutable += 1
      return
    }
    guard let seen = homes[home].nat.leave(from: own, to: address, at: now), target != home else {
      counters.filtered += 1
      return
    }
    guard !cuts[home * homes.count + target] else {
      counters.cut += 1
      return
    }
    let flight = Flight(
      datagram: datagram, from: seen, to: address, home: target, isFromOutside: true)
    transmit(flight, from: home, at: now)
  }

  /// Sends one datagram to every other host of the home; routers do not pass it on.
  public mutating func broadcast(_ datagram: [UInt8], from host: Int, at now: Instant) {
    guard let home = hosts[host].home else { return }
    for other in hosts.indices where other != host && hosts[other].home == home {
      counters.sent += 1
      let flight = Flight(
        datagram: datagram, from: hosts[host].address, to: hosts[other].address, home: home,
        isFromOutside: false)
      transmit(flight, from: home, at: now)
    }
  }

  private mutating func transmit(_ flight: Flight, from home: Int, at now: Instant) {
    let index = home * homes.count + flight.home
    if let arrival = paths[index].arrival(of: flight.datagram.count, at: now, &prng) {
      inFlight.schedule(flight, at: arrival)
    } else {
      counters.lost += 1
    }
  }

  /// When the next datagram arrives.
  public var deadline: Instant? { inFlight.deadline }

  /// The datagrams that have arrived by now, in order.
  public mutating func tick(at now: Instant) -> [Delivery] {
    var deliveries: [Delivery] = []
    while let flight = inFlight.popDue(at: now) {
      var to: Address? = flight.to
      if flight.isFromOutside {
        to = homes[flight.home].nat.enter(from: flight.from, to: flight.to, at: now)
        if to == nil { counters.filtered += 1 }
      }
      guard let to else { continue }
      guard let host = hosts.firstIndex(where: { $0.home == flight.home && $0.address == to })
      else {
        counters.unroutable += 1
        continue
      }
      counters.delivered += 1
      deliveries.append(Delivery(datagram: flight.datagram, from: flight.from, host: host))
    }
    return deliveries
  }

  // MARK: Changes

  /// Another router stands before a home. Those of `none` stay what they are: their hosts have
  /// addresses of the internet.
  public mutating func become(_ kind: NATKind, at home: Int) {
    guard homes[home].nat.kind != .none, kind != .none else { return }
    homes[home].nat.become(kind)
  }

  /// A home's router forgets all mappings.
  public mutating func rebind(_ home: Int) { homes[home].nat.rebind() }

  /// A home's router gets another address outside.
  public mutating func renumber(_ home: Int) {
    homes[home].renumbered += 1
    homes[home].nat.renumber(.v4(homes[home].network + 1 + homes[home].renumbered % 250))
  }

  /// Stops everything between two homes, without a word, or lets it pass again.
  public mutating func setCut(_ isCut: Bool, between one: Int, and other: Int) {
    cuts[one * homes.count + other] = isCut
    cuts[other * homes.count + one] = isCut
  }

  /// Whether traffic between two homes is stopped, the same in both directions.
  public func isCut(_ one: Int, _ other: Int) -> Bool { cuts[one * homes.count + other] }

  /// Changes one direction between two homes; what is on its way already is left alone.
  public mutating func setConditions(
    _ conditions: PathConditions, from sender: Int, to receiver: Int
  ) {
    paths[sender * homes.count + receiver].conditions = conditions
  }
}
