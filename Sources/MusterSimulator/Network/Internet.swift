import MusterBase

/// A simulated internet of homes, each with its own router and broadcast domain. Callers pass the
/// current time, and the seed determines all randomness.
///
/// All homes with a router share the same private address range, as real homes do: a private
/// address identifies a host only within its home. The homes' providers have no IPv6, so a host's
/// IPv6 address, if it has one, is a unique local one (RFC 4193) that is valid within its home.
public struct Internet: Sendable {
  /// A delivered datagram, with the source address as the receiving host sees it.
  public struct Delivery: Equatable, Sendable {
    /// The UDP payload.
    public var datagram: [UInt8]
    /// The source address, translated by the sender's router unless both hosts share a home.
    public var from: Address
    /// The index of the receiving host, as returned by `addHost`.
    public var host: Int
  }

  /// Datagram counts by outcome.
  public struct Counters: Equatable, Sendable {
    /// Datagrams sent; a broadcast counts once per receiver.
    public var sent: UInt64 = 0
    /// Datagrams delivered to a host.
    public var delivered: UInt64 = 0
    /// Datagrams dropped on a path by loss or at its bottleneck.
    public var lost: UInt64 = 0
    /// Datagrams dropped between two homes that are cut off from each other.
    public var cut: UInt64 = 0
    /// Datagrams dropped by a router: filtered, blocked, or sent to the router's own external
    /// address.
    public var filtered: UInt64 = 0
    /// Datagrams sent to an address without a host, or by a host without a network.
    public var unroutable: UInt64 = 0
  }

  private struct Home: Sendable {
    let number: Int
    var nat: NAT
    /// The number of times that the provider has changed the home's external address.
    var renumbered: UInt32 = 0

    /// The /24 prefix of a home on the internet, from 198.18.0.0/15 (RFC 2544).
    static func network(_ number: Int) -> UInt32 { 0xC612_0000 + UInt32(number) << 8 }
    var network: UInt32 { Self.network(number) }
    /// The /24 prefix inside the home: the external one without a router, else 192.168.1.0/24.
    var segment: UInt32 { nat.kind == .none ? network : 0xC0A8_0100 }
  }

  private struct Host: Sendable {
    /// The home that the host is attached to; nil while it moves.
    var home: Int?
    var address: Address
    /// The host's IPv6 address; nil for none.
    var v6: Address?
    /// The number of IPv6 addresses that the host has had.
    var v6Count: UInt64 = 0
  }

  private struct Flight: Sendable {
    let datagram: [UInt8]
    let from: Address
    let to: Address
    let home: Int
    /// Whether the datagram arrives from the internet and must pass the router.
    let isFromOutside: Bool
  }

  /// Totals since the start, in datagrams.
  public private(set) var counters = Counters()
  private var homes: [Home] = []
  private var hosts: [Host] = []
  /// The paths between homes, one row per sending home; the path of a home to itself is its local
  /// network.
  private var paths: [Pipe] = []
  private var cuts: [Bool] = []
  private var inFlight = EventQueue<Flight>()
  private var prng: PRNG

  /// Creates one home without hosts for each element of `kinds`; all paths have the same
  /// conditions.
  public init(homes kinds: [NATKind], conditions: PathConditions = .init(), seed: UInt64) {
    prng = PRNG(seed: seed)
    for (number, kind) in kinds.enumerated() {
      let outside = Address.Host.v4(Home.network(number) + 1)
      homes.append(Home(number: number, nat: NAT(kind, outside: outside, seed: prng.next())))
    }
    paths = Array(repeating: Pipe(conditions), count: kinds.count * kinds.count)
    cuts = Array(repeating: false, count: kinds.count * kinds.count)
  }

  // MARK: Hosts and homes

  /// Adds a host with one port and returns its index.
  public mutating func addHost(port: UInt16, in home: Int) -> Int {
    hosts.append(Host(home: nil, address: Address(host: .v4(0), port: port)))
    move(hosts.count - 1, to: home)
    return hosts.count - 1
  }

  /// Attaches a host to another home, where it gets the lowest free IPv4 address and no IPv6
  /// address yet.
  public mutating func move(_ host: Int, to home: Int) {
    hosts[host].home = nil
    hosts[host].v6 = nil
    let taken = hosts.filter { $0.home == home }.map(\.address.host)
    var address = homes[home].segment + 2
    while taken.contains(.v4(address)) { address += 1 }
    hosts[host].address.host = .v4(address)
    hosts[host].home = home
  }

  /// Gives a host an IPv6 address that it has not had before, in place of a former one: when
  /// duplicate address detection ends, or a privacy address expires (RFC 4862, RFC 8981).
  public mutating func assignV6(to host: Int) {
    hosts[host].v6Count += 1
    let low = UInt64(host + 1) << 32 | hosts[host].v6Count
    hosts[host].v6 = Address(
      host: .v6(high: 0xFD << 56, low: low, zone: 0), port: hosts[host].address.port)
  }

  /// Takes a host's IPv6 address away.
  public mutating func removeV6(of host: Int) { hosts[host].v6 = nil }

  /// The IPv4 address of a host on its local network.
  public func address(of host: Int) -> Address { hosts[host].address }
  /// All addresses of a host on its local network.
  public func addresses(of host: Int) -> [Address] {
    [hosts[host].address] + [hosts[host].v6].compactMap { $0 }
  }
  /// The index of the home that a host is attached to; nil while it moves.
  public func home(of host: Int) -> Int? { hosts[host].home }
  /// The NAT type of a home's router.
  public func kind(of home: Int) -> NATKind { homes[home].nat.kind }
  /// The number of homes; their indices start at 0.
  public var homeCount: Int { homes.count }

  // MARK: Datagrams

  /// Sends one datagram, through the router if its destination is on another network.
  public mutating func send(
    _ datagram: [UInt8], from host: Int, to address: Address, at now: Instant
  ) {
    counters.sent += 1
    guard let home = hosts[host].home else {
      counters.unroutable += 1
      return
    }
    guard case .v4(let ip) = address.host else {
      sendLocally(datagram, from: hosts[host].v6, to: address, in: home, at: now)
      return
    }
    let own = hosts[host].address
    guard ip & 0xFFFF_FF00 != homes[home].segment else {
      sendLocally(datagram, from: own, to: address, in: home, at: now)
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

  /// Sends one datagram to every other host of the home, over each address family that both have;
  /// routers do not forward broadcasts.
  public mutating func broadcast(_ datagram: [UInt8], from host: Int, at now: Instant) {
    guard let home = hosts[host].home else { return }
    for other in hosts.indices where other != host && hosts[other].home == home {
      counters.sent += 1
      sendLocally(
        datagram, from: hosts[host].address, to: hosts[other].address, in: home, at: now)
      guard let own = hosts[host].v6, let v6 = hosts[other].v6 else { continue }
      counters.sent += 1
      sendLocally(datagram, from: own, to: v6, in: home, at: now)
    }
  }

  /// Sends one datagram within a home, unless the sender has no address of the family (nil).
  private mutating func sendLocally(
    _ datagram: [UInt8], from own: Address?, to address: Address, in home: Int, at now: Instant
  ) {
    guard let own else {
      counters.unroutable += 1
      return
    }
    let flight = Flight(
      datagram: datagram, from: own, to: address, home: home, isFromOutside: false)
    transmit(flight, from: home, at: now)
  }

  private mutating func transmit(_ flight: Flight, from home: Int, at now: Instant) {
    let index = home * homes.count + flight.home
    if let passage = paths[index].pass(flight.datagram.count, at: now, &prng) {
      inFlight.schedule(flight, at: passage.arrival)
    } else {
      counters.lost += 1
    }
  }

  /// The time at which the next datagram arrives; nil if no datagram is in flight.
  public var deadline: Instant? { inFlight.deadline }

  /// Removes and returns the datagrams due by `now`, in order of arrival.
  public mutating func tick(at now: Instant) -> [Delivery] {
    var deliveries: [Delivery] = []
    while let flight = inFlight.popDue(at: now) {
      var to: Address? = flight.to
      if flight.isFromOutside {
        to = homes[flight.home].nat.enter(from: flight.from, to: flight.to, at: now)
        if to == nil { counters.filtered += 1 }
      }
      guard let to else { continue }
      let host = hosts.firstIndex {
        $0.home == flight.home && ($0.address == to || $0.v6 == to)
      }
      guard let host else {
        counters.unroutable += 1
        continue
      }
      counters.delivered += 1
      deliveries.append(Delivery(datagram: flight.datagram, from: flight.from, host: host))
    }
    return deliveries
  }

  // MARK: Changes

  /// Replaces the router of a home; does nothing if the old or the new kind is `none`, because
  /// hosts without a router have public addresses.
  public mutating func become(_ kind: NATKind, at home: Int) {
    guard homes[home].nat.kind != .none, kind != .none else { return }
    homes[home].nat.become(kind)
  }

  /// Makes a home's router forget all mappings.
  public mutating func rebind(_ home: Int) { homes[home].nat.rebind() }

  /// Gives a home's router another external address, which also voids all mappings.
  public mutating func renumber(_ home: Int) {
    homes[home].renumbered += 1
    homes[home].nat.renumber(.v4(homes[home].network + 1 + homes[home].renumbered % 250))
  }

  /// Starts or stops silently dropping all datagrams between two homes.
  public mutating func setCut(_ isCut: Bool, between one: Int, and other: Int) {
    cuts[one * homes.count + other] = isCut
    cuts[other * homes.count + one] = isCut
  }

  /// Whether all datagrams between two homes are dropped, in both directions.
  public func isCut(_ one: Int, _ other: Int) -> Bool { cuts[one * homes.count + other] }

  /// Changes the path conditions in one direction between two homes; datagrams in flight are not
  /// affected.
  public mutating func setConditions(
    _ conditions: PathConditions, from sender: Int, to receiver: Int
  ) {
    paths[sender * homes.count + receiver].conditions = conditions
  }
}
