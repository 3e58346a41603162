import MusterBase

/// A simulated network of hosts in one broadcast domain. Callers pass the current time, and the
/// seed determines all randomness.
///
/// A datagram passes the access link of its sender, the path between the two hosts, and the access
/// link of its receiver. An access link is shared by all paths of its host, and ideal unless
/// `setAccess` changes it.
public struct Network: Sendable {
  /// A datagram in flight, which `tick` returns once it has arrived.
  public struct Delivery: Equatable, Sendable {
    /// The UDP payload, possibly corrupted on the path.
    public var datagram: [UInt8]
    /// The source address as sent, possibly forged.
    public var from: Address
    /// The address of the receiving host.
    public var to: Address
    /// The time that the datagram waited at bottlenecks.
    public var queueing = Duration.zero

    /// A datagram in flight to the host at `to`.
    public init(datagram: [UInt8], from: Address, to: Address) {
      self.datagram = datagram
      self.from = from
      self.to = to
    }
  }

  /// Datagram counts by outcome.
  public struct Counters: Equatable, Sendable {
    /// Datagrams sent to the address of a host; a broadcast counts once per receiver.
    public var sent: UInt64 = 0
    /// Datagrams delivered to a host, duplicates included.
    public var delivered: UInt64 = 0
    /// Datagrams dropped on a path by random loss, at its bottleneck or while it is blocked.
    public var lost: UInt64 = 0
    /// Datagrams dropped by a partition or the isolation of a host.
    public var cut: UInt64 = 0
    /// Datagrams duplicated on a path.
    public var duplicated: UInt64 = 0
    /// Datagrams corrupted on a path and delivered nonetheless.
    public var corrupted: UInt64 = 0
    /// Datagrams sent to an address without a host.
    public var unroutable: UInt64 = 0
  }

  /// Totals since the start, in datagrams.
  public private(set) var counters = Counters()

  private var hosts = PeerTable<Address, Int>()
  private let addresses: [Address]
  /// The paths between hosts, one row per sending host; the last row is for outside senders.
  private var paths: [Pipe]
  /// The two directions of the access link of each host; the last of `ups` is for outside senders.
  private var ups: [Pipe]
  private var downs: [Pipe]
  /// The partition group of each host; hosts in different groups cannot reach each other. The last
  /// element is for outside senders.
  private var groups: [Int]
  /// Whether each host is cut off from all other hosts.
  private var isolated: [Bool]
  private var inFlight = EventQueue<Flight>()
  private var prng: PRNG

  /// A datagram between two of the pipes on its way, or after the last one.
  private struct Flight: Sendable {
    var delivery: Delivery
    let serviceClass: ServiceClass
    let sender: Int
    let receiver: Int
    /// The pipe that comes next; nil after the last one.
    var next: Stage? = .up
  }

  private enum Stage: Sendable {
    case up, path, down

    var next: Self? { self == .up ? .path : self == .path ? .down : nil }
  }

  /// A network between hosts at these addresses, with the same conditions on every path.
  public init(hosts addresses: [Address], conditions: PathConditions = .init(), seed: UInt64) {
    self.addresses = addresses
    for (index, address) in addresses.enumerated() { hosts[address] = index }
    paths = Array(
      repeating: Pipe(conditions), count: (addresses.count + 1) * addresses.count)
    ups = Array(repeating: Pipe(.ideal), count: addresses.count + 1)
    downs = Array(repeating: Pipe(.ideal), count: addresses.count)
    groups = Array(repeating: 0, count: addresses.count + 1)
    isolated = Array(repeating: false, count: addresses.count)
    prng = PRNG(seed: seed)
  }

  /// Sends one datagram; `from` need not be the address of a host.
  public mutating func send(
    _ datagram: [UInt8], as serviceClass: ServiceClass = .standard, from: Address, to: Address,
    at now: Instant
  ) {
    guard let receiver = hosts[to] else {
      counters.unroutable += 1
      return
    }
    transmit(
      Delivery(datagram: datagram, from: from, to: to), as: serviceClass,
      hosts[from] ?? addresses.count, receiver, at: now)
  }

  /// Sends one datagram to every other host; loss and delay are drawn separately for each copy.
  public mutating func broadcast(_ datagram: [UInt8], from: Address, at now: Instant) {
    let sender = hosts[from] ?? addresses.count
    for receiver in addresses.indices where receiver != sender {
      transmit(
        Delivery(datagram: datagram, from: from, to: addresses[receiver]), sender, receiver,
        at: now)
    }
  }

  /// The time at which the next datagram arrives; nil if no datagram is in flight.
  public var deadline: Instant? { inFlight.deadline }

  /// Removes and returns the datagrams due by `now`, in order of arrival.
  public mutating func tick(at now: Instant) -> [Delivery] {
    var deliveries: [Delivery] = []
    while let due = inFlight.deadline, let flight = inFlight.popDue(at: now) {
      if let arrived = advance(flight, at: due) { deliveries.append(arrived.delivery) }
    }
    counters.delivered += UInt64(deliveries.count)
    return deliveries
  }

  // MARK: Faults

  /// Changes the path conditions in one direction between two hosts; datagrams in flight are not
  /// affected.
  public mutating func setConditions(
    _ conditions: PathConditions, from sender: Address, to receiver: Address
  ) {
    change(sender, receiver) { $0.conditions = conditions }
  }

  /// Changes the conditions from a host into the network; datagrams in flight are not affected.
  public mutating func setAccess(up conditions: PathConditions, of host: Address) {
    if let index = hosts[host] { ups[index].conditions = conditions }
  }

  /// Changes the conditions from the network to a host; datagrams that have passed its bottleneck
  /// are not affected.
  public mutating func setAccess(down conditions: PathConditions, of host: Address) {
    if let index = hosts[host] { downs[index].conditions = conditions }
  }

  /// Blocks or unblocks one direction between two hosts.
  public mutating func setBlocked(
    _ isBlocked: Bool, from sender: Address, to receiver: Address
  ) {
    change(sender, receiver) { $0.isBlocked = isBlocked }
  }

  /// Removes the path in one direction between two hosts for the whole run.
  public mutating func sever(from sender: Address, to receiver: Address) {
    change(sender, receiver) { $0.isSevered = true }
  }

  /// Separates these hosts from all other hosts; connectivity within both groups remains.
  public mutating func partition(_ island: [Address]) {
    for address in addresses { groups[hosts[address] ?? 0] = island.contains(address) ? 1 : 0 }
  }

  /// Cuts one host off from all other hosts, or ends that; independent of partitions.
  public mutating func setIsolated(_ isIsolated: Bool, _ host: Address) {
    if let index = hosts[host] { isolated[index] = isIsolated }
  }

  /// Ends partitions, isolation and blocked directions; path conditions and removed paths stay as
  /// they are.
  public mutating func heal() {
    for index in groups.indices { groups[index] = 0 }
    for index in isolated.indices { isolated[index] = false }
    for index in paths.indices { paths[index].isBlocked = false }
  }

  private mutating func change(
    _ sender: Address, _ receiver: Address, _ body: (inout Pipe) -> Void
  ) {
    guard let receiver = hosts[receiver] else { return }
    body(&paths[(hosts[sender] ?? addresses.count) * addresses.count + receiver])
  }

  // MARK: Transmission

  private mutating func transmit(
    _ delivery: Delivery, as serviceClass: ServiceClass = .standard, _ sender: Int,
    _ receiver: Int, at now: Instant
  ) {
    counters.sent += 1
    guard isConnected(sender, receiver) else {
      counters.cut += 1
      return
    }
    let flight = Flight(
      delivery: delivery, serviceClass: serviceClass, sender: sender, receiver: receiver)
    if let arrived = advance(flight, at: now) { inFlight.schedule(arrived, at: now) }
  }

  /// Sends a datagram through the pipes that remain on its way, until one of them delays it;
  /// returns the datagram if it has passed all of them.
  private mutating func advance(_ flight: Flight, at now: Instant) -> Flight? {
    var flight = flight
    while let stage = flight.next {
      let (bytes, serviceClass) = (flight.delivery.datagram.count, flight.serviceClass)
      let passage: Pipe.Passage?
      switch stage {
      case .up: passage = ups[flight.sender].pass(bytes, as: serviceClass, at: now, &prng)
      case .path:
        passage = paths[pathIndex(flight)].pass(bytes, as: serviceClass, at: now, &prng)
      case .down:
        passage = downs[flight.receiver].pass(bytes, as: serviceClass, at: now, &prng)
      }
      guard let passage else {
        counters.lost += 1
        return nil
      }
      flight.delivery.queueing += passage.queueing
      flight.next = stage.next
      alter(&flight, conditions(of: flight, at: stage), arrival: passage.arrival)
      guard passage.arrival == now else {
        inFlight.schedule(flight, at: passage.arrival)
        return nil
      }
    }
    return flight
  }

  private func pathIndex(_ flight: Flight) -> Int {
    flight.sender * addresses.count + flight.receiver
  }

  private func conditions(of flight: Flight, at stage: Stage) -> PathConditions {
    switch stage {
    case .up: ups[flight.sender].conditions
    case .path: paths[pathIndex(flight)].conditions
    case .down: downs[flight.receiver].conditions
    }
  }

  /// Duplicates and corrupts a datagram that has just passed a pipe with these conditions.
  private mutating func alter(
    _ flight: inout Flight, _ conditions: PathConditions, arrival: Instant
  ) {
    if prng.happens(conditions.duplication) {
      counters.duplicated += 1
      let later = prng.duration(.zero, conditions.duplicateDelay)
      inFlight.schedule(flight, at: arrival + later)
    }
    if prng.happens(conditions.corruption) {
      counters.corrupted += 1
      flight.delivery.datagram = Self.corrupted(flight.delivery.datagram, &prng)
    }
  }

  /// Whether partitions and isolation let datagrams pass; those of outside senders always do.
  private func isConnected(_ sender: Int, _ receiver: Int) -> Bool {
    sender == addresses.count
      || (groups[sender] == groups[receiver] && !isolated[sender] && !isolated[receiver])
  }

  /// A copy of a datagram that is truncated or has up to three flipped bits.
  static func corrupted(_ datagram: [UInt8], _ prng: inout PRNG) -> [UInt8] {
    guard !datagram.isEmpty else { return datagram }
    if prng.chance(0.3) { return Array(datagram.prefix(prng.below(datagram.count))) }
    var altered = datagram
    for _ in 0...prng.below(3) { altered[prng.below(altered.count)] ^= 1 << UInt8(prng.below(8)) }
    // Two flips of the same bit cancel each other out and would leave the datagram intact.
    if altered == datagram { altered[0] ^= 0x80 }
    return altered
  }
}
