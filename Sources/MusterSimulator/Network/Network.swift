import MusterBase

/// A network of hosts in one broadcast domain, with the shape of an engine: no clock, no chance but
/// its seed.
public struct Network: Sendable {
  /// A datagram that arrives.
  public struct Delivery: Equatable, Sendable {
    /// The UDP payload, possibly corrupted on the path.
    public var datagram: [UInt8]
    /// The source address as sent, possibly forged.
    public var from: Address
    /// The address of the receiving host.
    public var to: Address

    /// A datagram in flight to the host at `to`.
    public init(datagram: [UInt8], from: Address, to: Address) {
      self.datagram = datagram
      self.from = from
      self.to = to
    }
  }

  /// Datagrams by their fate.
  public struct Counters: Equatable, Sendable {
    /// Handed to a path; a broadcast counts once per receiver.
    public var sent: UInt64 = 0
    /// Arrived at a host, second copies included.
    public var delivered: UInt64 = 0
    /// Dropped by a path: by chance, at its bottleneck or while it is blocked.
    public var lost: UInt64 = 0
    /// Stopped by a partition.
    public var cut: UInt64 = 0
    /// Sent on by a path in two copies.
    public var duplicated: UInt64 = 0
    /// Altered by a path, and delivered none the less.
    public var corrupted: UInt64 = 0
    /// To an address where no host is.
    public var unroutable: UInt64 = 0
  }

  /// Totals since the start, in datagrams.
  public private(set) var counters = Counters()

  private var hosts = PeerTable<Address, Int>()
  private let addresses: [Address]
  /// Path conditions row by row, from one host to all others; the last row is for outside senders.
  private var paths: [Path]
  /// Hosts of different groups do not hear each other; the last is where outsiders are.
  private var groups: [Int]
  private var inFlight = EventQueue<Delivery>()
  private var prng: PRNG

  /// A network without faults between hosts at these addresses.
  public init(hosts addresses: [Address], conditions: PathConditions = .init(), seed: UInt64) {
    self.addresses = addresses
    for (index, address) in addresses.enumerated() { hosts[address] = index }
    paths = Array(
      repeating: Path(conditions), count: (addresses.count + 1) * addresses.count)
    groups = Array(repeating: 0, count: addresses.count + 1)
    prng = PRNG(seed: seed)
  }

  /// Sends one datagram; `from` may be the address of no host.
  public mutating func send(
    _ datagram: [UInt8], from: Address, to: Address, at now: Instant
  ) {
    guard let receiver = hosts[to] else {
      counters.unroutable += 1
      return
    }
    transmit(
      Delivery(datagram: datagram, from: from, to: to), hosts[from] ?? addresses.count, receiver,
      at: now)
  }

  /// Sends one datagram to every other host, each copy with a fate of its own.
  public mutating func broadcast(_ datagram: [UInt8], from: Address, at now: Instant) {
    let sender = hosts[from] ?? addresses.count
    for receiver in addresses.indices where receiver != sender {
      transmit(
        Delivery(datagram: datagram, from: from, to: addresses[receiver]), sender, receiver,
        at: now)
    }
  }

  /// When the next datagram arrives.
  public var deadline: Instant? { inFlight.deadline }

  /// The datagrams that have arrived by now, in order.
  public mutating func tick(at now: Instant) -> [Delivery] {
    var deliveries: [Delivery] = []
    while let delivery = inFlight.popDue(at: now) { deliveries.append(delivery) }
    counters.delivered += UInt64(deliveries.count)
    return deliveries
  }

  // MARK: Faults

  /// Changes one direction between two hosts; datagrams in flight are not affected.
  public mutating func setConditions(
    _ conditions: PathConditions, from sender: Address, to receiver: Address
  ) {
    change(sender, receiver) { $0.conditions = conditions }
  }

  /// Stops everything in one direction between two hosts, or lets it pass again.
  public mutating func setBlocked(
    _ isBlocked: Bool, from sender: Address, to receiver: Address
  ) {
    change(sender, receiver) { $0.isBlocked = isBlocked }
  }

  /// Removes one direction between two hosts for the whole run.
  public mutating func sever(from sender: Address, to receiver: Address) {
    change(sender, receiver) { $0.isSevered = true }
  }

  /// Cuts these hosts off from all others, which still hear one another, as they do themselves.
  public mutating func partition(_ island: [Address]) {
    for address in addresses { groups[hosts[address] ?? 0] = island.contains(address) ? 1 : 0 }
  }

  /// Ends partitions and blocked directions; what the paths do to datagrams stays, and so do missing
  /// paths.
  public mutating func heal() {
    for index in groups.indices { groups[index] = 0 }
    for index in paths.indices { paths[index].isBlocked = false }
  }

  private mutating func change(
    _ sender: Address, _ receiver: Address, _ body: (inout Path) -> Void
  ) {
    guard let receiver = hosts[receiver] else { return }
    body(&paths[(hosts[sender] ?? addresses.count) * addresses.count + receiver])
  }

  // MARK: On the way

  private mutating func transmit(
    _ delivery: Delivery, _ sender: Int, _ receiver: Int, at now: Instant
  ) {
    counters.sent += 1
    // An outsider is wherever the receiver is.
    guard sender == addresses.count || groups[sender] == groups[receiver] else {
      counters.cut += 1
      return
    }
    let index = sender * addresses.count + receiver
    guard
      let arrival = paths[index].arrival(of: delivery.datagram.count, at: now, &prng)
    else {
      counters.lost += 1
      return
    }
    let conditions = paths[index].conditions
    if prng.happens(conditions.duplication) {
      counters.duplicated += 1
      let later = prng.duration(.zero, conditions.duplicateDelay)
      inFlight.schedule(delivery, at: arrival + later)
    }
    var delivery = delivery
    if prng.happens(conditions.corruption) {
      counters.corrupted += 1
      delivery.datagram = Self.corrupted(delivery.datagram, &prng)
    }
    inFlight.schedule(delivery, at: arrival)
  }

  /// Some bits turned over, or the end missing.
  static func corrupted(_ datagram: [UInt8], _ prng: inout PRNG) -> [UInt8] {
    guard !datagram.isEmpty else { return datagram }
    if prng.chance(0.3) { return Array(datagram.prefix(prng.below(datagram.count))) }
    var altered = datagram
    for _ in 0...prng.below(3) { altered[prng.below(altered.count)] ^= 1 << UInt8(prng.below(8)) }
    // Bits turned back again would be no corruption.
    if altered == datagram { altered[0] ^= 0x80 }
    return altered
  }
}
