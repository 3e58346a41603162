import MusterBase
import MusterSystem
import NIOPosix

/// A gateway's mapping of an external address and port to a UDP port of this machine.
public struct PortMapping: Equatable, Sendable {
  /// A port mapping protocol.
  public enum Method: String, Sendable {
    case natPMP = "NAT-PMP"
    case upnp = "UPnP"
  }

  /// The protocol that granted the mapping.
  public var method: Method
  /// The external address and port.
  public var outside: Address
  /// The lifetime granted by the gateway; zero for a mapping that does not expire.
  public var lifetime: Duration

  public init(method: Method, outside: Address, lifetime: Duration) {
    self.method = method
    self.outside = outside
    self.lifetime = lifetime
  }

  /// Whether the mapping is reachable from outside; false if the gateway is itself behind another
  /// NAT and has a private address.
  public var leadsOutside: Bool { outside.isPublic }
}

/// Requests port mappings for a UDP port of this machine from its gateway.
///
/// A `PortMapper` remembers the gateway's service, which speeds up renewal and deletion; use the
/// same instance for all requests.
public struct PortMapper: Sendable {
  private let port: UInt16
  private let interfaces: [String]
  private let bound: [Address]?
  private let memory = PortMemory()

  /// The requested lifetime in seconds: two hours, as recommended by RFC 6886 section 3.3.
  private static let lease: UInt32 = 7200
  private static let mapLimit = Duration.seconds(3)
  private static let unmapLimit = Duration.milliseconds(500)

  /// Creates a mapper for UDP port `port`. `interfaces` are the names that may be used, empty for
  /// all; `bound` are the addresses that the port's sockets are bound to, nil for all.
  public init(port: UInt16, interfaces: [String], bound: [Address]? = nil) {
    self.port = port
    self.interfaces = interfaces
    self.bound = bound
  }

  /// Requests or renews a mapping: by NAT-PMP, then by UPnP.
  ///
  /// Returns nil if the gateway grants no mapping by either protocol, or another request is under
  /// way. Sends nothing without a default route through a permitted interface, if this machine's
  /// address there is public (so there is no NAT), or if no socket is bound to that address. The
  /// requests run on a separate thread, and the result is nil after 3 s; a mapping that is granted
  /// later is deleted unless it renews an existing mapping.
  public func map() async -> PortMapping? {
    let question = PortQuestion(deadline: BootClock.now + Self.mapLimit) { memory.isCancelled }
    return await Self.onThread(limit: Self.mapLimit) { answer in
      // A gateway can keep the library busy without limit, so at most one thread is used.
      guard memory.begin() else {
        answer.claim()?.resume(returning: nil)
        return
      }
      let before = memory.made
      let mapping = ask(question, renewing: before)
      let caller = answer.claim()
      if let mapping {
        let isWanted = caller != nil || mapping.outside.port == before?.outside.port
        if !isWanted || !memory.keep(mapping) {
          takeBack(mapping, until: BootClock.now + Self.unmapLimit)
        }
      }
      memory.end()
      caller?.resume(returning: mapping)
    }
  }

  /// Deletes a mapping; gives up after 0.5 s.
  public func unmap(_ mapping: PortMapping) async {
    memory.forget(mapping)
    let deadline = BootClock.now + Self.unmapLimit
    _ = await Self.onThread(limit: Self.unmapLimit) { answer in
      takeBack(mapping, until: deadline)
      answer.claim()?.resume(returning: nil)
    }
  }

  /// Stops port mapping and deletes the current mapping. Waits at most 0.5 s for a request under
  /// way, and 0.5 s for the gateway to delete the mapping.
  public func close() async {
    _ = await Self.waiting(limit: Self.unmapLimit) { answer in memory.cancel(answer) }
    if let mapping = memory.close() { await unmap(mapping) }
  }

  // MARK: Blocking requests

  private func ask(_ question: PortQuestion, renewing before: PortMapping?) -> PortMapping? {
    guard port != 0, let route = DefaultRoute.current(through: interfaces),
      let inside = route.ownAddress, !inside.isPublic,
      bound.map({ Self.reaches($0, inside) }) ?? true
    else { return nil }
    let requested = before?.outside.port ?? port
    // A gateway that answered by UPnP before is asked by UPnP first, which saves the timeout of
    // NAT-PMP.
    let known = memory.service(of: route).flatMap {
      UPnP.map(port, to: requested, at: $0, lease: Self.lease, question)
    }
    if let known { return known }
    // If the answer is lost, a new mapping is withdrawn, because it would stay open. A renewed
    // mapping is kept, because a withdrawal would delete a mapping in use.
    let mapping = NATPMP.map(
      port, to: requested, through: route.gateway, lease: Self.lease, isNew: before == nil, question
    )
    if let mapping { return mapping }
    let service = UPnP.find(route, question)
    // An interrupted search does not show that the service is gone, and the stored service is still
    // needed for deleting mappings.
    if service != nil || !question.isCancelled() { memory.remember(service, of: route) }
    return service.flatMap { UPnP.map(port, to: requested, at: $0, lease: Self.lease, question) }
  }

  private func takeBack(_ mapping: PortMapping, until deadline: Instant) {
    guard let route = DefaultRoute.current(through: interfaces) else { return }
    switch mapping.method {
    case .natPMP: NATPMP.unmap(port, through: route.gateway, until: deadline)
    case .upnp:
      guard let service = memory.service(of: route) else { return }
      UPnP.unmap(mapping.outside.port, at: service)
    }
  }

  /// Whether a socket bound to one of the `bound` addresses receives datagrams for this machine's
  /// IPv4 address `inside`.
  package static func reaches(_ bound: [Address], _ inside: Address) -> Bool {
    bound.contains { $0.host == .v4(0) || $0.host == inside.host }
  }

  /// Runs `body` on a new thread and returns its answer; nil if `limit` passes first.
  private static func onThread(
    limit: Duration, _ body: @escaping @Sendable (PortAnswer) -> Void
  ) async -> PortMapping? {
    await waiting(limit: limit) { answer in
      WorkerThread("muster-gateway") { body(answer) }
    }
  }

  private static func waiting(
    limit: Duration, _ begin: (PortAnswer) -> Void
  ) async -> PortMapping? {
    await withCheckedContinuation { continuation in
      let answer = PortAnswer(continuation)
      MultiThreadedEventLoopGroup.singleton.any().scheduleTask(
        in: .nanoseconds(limit.wholeNanoseconds)
      ) { answer.claim()?.resume(returning: nil) }
      begin(answer)
    }
  }
}
