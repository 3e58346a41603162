import MusterBase
import MusterDevices
import NIOPosix

/// A port of this machine that a gateway lets others in at.
public struct PortMapping: Equatable, Sendable {
  /// How the gateway was asked.
  public enum Method: String, Sendable {
    case natPMP = "NAT-PMP"
    case upnp = "UPnP"
  }

  public var method: Method
  /// Address and port at which the gateway lets others in.
  public var outside: Address
  /// For how long, from when it was made; zero where it lasts until it is taken back.
  public var lifetime: Duration

  public init(method: Method, outside: Address, lifetime: Duration) {
    self.method = method
    self.outside = outside
    self.lifetime = lifetime
  }

  /// Whether others can get there: not if the gateway's own address is a private one, because it
  /// stands behind another gateway that knows nothing of this.
  public var leadsOutside: Bool { outside.isOutside }
}

/// Has the gateway let others in at a UDP port of this machine, where it offers that.
///
/// One `PortMapper` remembers where it found the gateway's service, so that renewing and taking
/// back are quick: use the same one for all three.
public struct PortMapper: Sendable {
  private let port: UInt16
  private let interfaces: [String]
  private let bound: [Address]?
  private let memory = PortMemory()

  /// RFC 6886 3.3 recommends two hours, in seconds.
  private static let lease: UInt32 = 7200
  private static let mapLimit = Duration.seconds(3)
  private static let unmapLimit = Duration.milliseconds(500)

  /// For UDP port `port`; `interfaces`: names that may be used, empty for all; `bound`: what the
  /// sockets of that port are bound to, nil for every address.
  public init(port: UInt16, interfaces: [String], bound: [Address]? = nil) {
    self.port = port
    self.interfaces = interfaces
    self.bound = bound
  }

  /// Asks the gateway for a mapping, or renews it: NAT-PMP first, then UPnP.
  ///
  /// nil where no gateway offers one. Sends nothing at all where there is no default route through
  /// a permitted interface, where this machine's address there is not a private one (then nobody
  /// translates it), or where no socket is bound to that address. Blocks a thread of its own, never
  /// the caller; takes 3 s at most. What comes later is taken back, unless it renews the mapping
  /// that there was.
  public func map() async -> PortMapping? {
    let question = PortQuestion(deadline: BootClock.now + Self.mapLimit) { memory.isCancelled }
    return await Self.onThread(limit: Self.mapLimit) { answer in
      // A gateway may keep the library busy for as long as it likes: one thread, and no more.
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

  /// Takes a mapping back; within 0.5 s or not at all.
  public func unmap(_ mapping: PortMapping) async {
    memory.forget(mapping)
    let deadline = BootClock.now + Self.unmapLimit
    _ = await Self.onThread(limit: Self.unmapLimit) { answer in
      takeBack(mapping, until: deadline)
      answer.claim()?.resume(returning: nil)
    }
  }

  /// Has nothing more mapped and takes back what is: waits 0.5 s at most for a question under way,
  /// and as long again for the gateway to close the port.
  public func close() async {
    _ = await Self.waiting(limit: Self.unmapLimit) { answer in memory.cancel(answer) }
    if let mapping = memory.close() { await unmap(mapping) }
  }

  // MARK: On a thread that may block

  private func ask(_ question: PortQuestion, renewing before: PortMapping?) -> PortMapping? {
    guard port != 0, let route = DefaultRoute.current(through: interfaces),
      let inside = route.ownAddress, !inside.isOutside,
      bound.map({ Self.reaches($0, inside) }) ?? true
    else { return nil }
    let requested = before?.outside.port ?? port
    // A gateway that has answered by UPnP before is spared the question that it does not know.
    let known = memory.service(of: route).flatMap {
      UPnP.map(port, to: requested, at: $0, lease: Self.lease, question)
    }
    if let known { return known }
    // What is given up would else stay open; but a lifetime of 0 closes whatever the port has.
    let mapping = NATPMP.map(
      port, to: requested, through: route.gateway, lease: Self.lease, isNew: before == nil, question
    )
    if let mapping { return mapping }
    let service = UPnP.find(route, question)
    // A search cut short tells nothing, and the way to take a mapping back is still needed.
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

  /// Whether what comes for this machine's address `inside` gets to one of these sockets.
  package static func reaches(_ bound: [Address], _ inside: Address) -> Bool {
    bound.contains { $0.host == .v4(0) || $0.host == inside.host }
  }

  /// What `body` answers, from a thread of its own, or nil after `limit`.
  private static func onThread(
    limit: Duration, _ body: @escaping @Sendable (PortAnswer) -> Void
  ) async -> PortMapping? {
    await waiting(limit: limit) { answer in
      WorkerThread("muster-gateway") { body(answer) }.detach()
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
