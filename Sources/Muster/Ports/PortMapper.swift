import MusterBase
import MusterDevices
import NIOPosix
import Synchronization

/// A port of this machine that a gateway lets others in at.
public struct PortMapping: Equatable, Sendable {
  /// How the gateway was asked.
  public enum Way: String, Sendable {
    case natPMP = "NAT-PMP"
    case upnp = "UPnP"
  }

  public var way: Way
  /// Address and port at which the gateway lets others in.
  public var outside: Address
  /// For how long, from when it was made; zero where it lasts until it is taken back.
  public var lifetime: Duration

  public init(way: Way, outside: Address, lifetime: Duration) {
    self.way = way
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
  private let memory = Memory()

  /// RFC 6886 3.3 recommends two hours, in seconds.
  private static let lease: UInt32 = 7200
  private static let mapLimit = Duration.seconds(3)
  private static let unmapLimit = Duration.milliseconds(500)

  /// For UDP port `port`; `interfaces`: names that may be used, empty for all.
  public init(port: UInt16, interfaces: [String]) {
    self.port = port
    self.interfaces = interfaces
  }

  /// Asks the gateway for a mapping, or renews it: NAT-PMP first, then UPnP.
  ///
  /// nil where no gateway offers one. Sends nothing at all where there is no default route through
  /// a permitted interface, or where this machine's address there is not a private one: then nobody
  /// translates it. Blocks a thread of NIO's pool, never the caller; takes 3 s at most.
  public func map() async -> PortMapping? {
    let deadline = BootClock.now + Self.mapLimit
    return await Self.onThread(limit: Self.mapLimit) {
      // A gateway may keep the library busy for as long as it likes: one thread, and no more.
      guard memory.begin() else { return nil }
      defer { memory.end() }
      return ask(until: deadline)
    } late: {
      takeBack($0, until: BootClock.now + Self.unmapLimit)
    }
  }

  /// Takes a mapping back; within 0.5 s or not at all.
  public func unmap(_ mapping: PortMapping) async {
    let deadline = BootClock.now + Self.unmapLimit
    _ = await Self.onThread(limit: Self.unmapLimit) {
      takeBack(mapping, until: deadline)
      return nil
    } late: { _ in
    }
  }

  // MARK: On a thread that may block

  private func ask(until deadline: Instant) -> PortMapping? {
    guard port != 0, let route = DefaultRoute.current(through: interfaces), route.isTranslated
    else { return nil }
    let wish = memory.wish ?? port
    // A gateway that has answered by UPnP before is spared the question that it does not know.
    var mapping = memory.service(of: route).flatMap {
      UPnP.map(port, to: wish, at: $0, lease: Self.lease, until: deadline)
    }
    mapping =
      mapping
      ?? NATPMP.map(port, to: wish, through: route.gateway, lease: Self.lease, until: deadline)
    if mapping == nil {
      let service = UPnP.find(route, until: deadline)
      memory.remember(service, of: route)
      mapping = service.flatMap {
        UPnP.map(port, to: wish, at: $0, lease: Self.lease, until: deadline)
      }
    }
    memory.remember(mapping)
    return mapping
  }

  private func takeBack(_ mapping: PortMapping, until deadline: Instant) {
    guard let route = DefaultRoute.current(through: interfaces) else { return }
    switch mapping.way {
    case .natPMP: NATPMP.unmap(port, through: route.gateway, until: deadline)
    case .upnp:
      guard let service = memory.service(of: route) else { return }
      UPnP.unmap(mapping.outside.port, at: service)
    }
  }

  /// What `body` gives, or nil after `limit`; what comes after that is handed to `late`.
  private static func onThread(
    limit: Duration, _ body: @escaping @Sendable () -> PortMapping?,
    late: @escaping @Sendable (PortMapping) -> Void
  ) async -> PortMapping? {
    await withCheckedContinuation { continuation in
      let answer = Answer(continuation)
      let timer = MultiThreadedEventLoopGroup.singleton.any().scheduleTask(
        in: .nanoseconds(limit.wholeNanoseconds)
      ) { _ = answer.give(nil) }
      NIOThreadPool.singleton.submit { state in
        let mapping = state == .active ? body() : nil
        timer.cancel()
        if !answer.give(mapping), let mapping { late(mapping) }
      }
    }
  }
}

/// Resumes who waits with the first of several answers.
private final class Answer: Sendable {
  private let waiting: Mutex<CheckedContinuation<PortMapping?, Never>?>

  init(_ continuation: CheckedContinuation<PortMapping?, Never>) {
    waiting = Mutex(continuation)
  }

  /// Whether this is the first one.
  func give(_ mapping: PortMapping?) -> Bool {
    let continuation = waiting.withLock { waiting in
      defer { waiting = nil }
      return waiting
    }
    continuation?.resume(returning: mapping)
    return continuation != nil
  }
}

/// What one mapper knows from one question to the next.
private final class Memory: Sendable {
  private struct Known {
    var isBusy = false
    var found: (service: UPnP.Service, route: DefaultRoute)?
    var wish: UInt16?
  }

  private let known = Mutex(Known())

  /// False while an earlier question has not come to its end.
  func begin() -> Bool {
    known.withLock { known in
      defer { known.isBusy = true }
      return !known.isBusy
    }
  }

  func end() { known.withLock { $0.isBusy = false } }

  /// The service found behind this route, and no other.
  func service(of route: DefaultRoute) -> UPnP.Service? {
    known.withLock { $0.found?.route == route ? $0.found?.service : nil }
  }

  func remember(_ service: UPnP.Service?, of route: DefaultRoute) {
    known.withLock { $0.found = service.map { ($0, route) } }
  }

  /// The port that was got the last time: another one would be a second door.
  var wish: UInt16? { known.withLock { $0.wish } }

  func remember(_ mapping: PortMapping?) {
    guard let mapping else { return }
    known.withLock { $0.wish = mapping.outside.port }
  }
}
