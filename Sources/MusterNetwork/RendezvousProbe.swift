import MusterBase
import MusterCrypto
import MusterDiscovery
import MusterSystem
import MusterWire
import NIOCore
import NIOPosix

/// A single query of rendezvous servers for this host's server-reflexive addresses, without a node.
public struct RendezvousProbe: Sendable {
  /// The result of querying one address.
  public enum Outcome: Equatable, Sendable {
    /// The name did not resolve in time.
    case unresolved
    /// The rendezvous server answered; `seen` is this host's server-reflexive address.
    case answered(seen: Address, roundTrip: Duration)
    /// The answer is not a cookie of this protocol version, or does not match a hello.
    case invalidResponse
    /// ICMP port unreachable: no process listens on the port, or a firewall rejects the datagram.
    case refused
    /// The host has no route or no permission to send; the string is the system's description.
    case unreachable(String)
    /// No answer arrived in time.
    case silent
  }

  /// The result for one address of one rendezvous server.
  public struct Report: Equatable, Sendable {
    /// `HOST:PORT` as given.
    public var name: String
    /// The queried address; nil if the name did not resolve.
    public var address: Address?
    /// The result of the query.
    public var outcome: Outcome

    /// Whether the rendezvous server answered.
    public var hasAnswered: Bool { if case .answered = outcome { true } else { false } }
  }

  /// The results in the order of the names and, for each name, of its addresses.
  public let reports: [Report]
  /// The server-reflexive address in each answer. For each address family, one socket queries all
  /// rendezvous servers, and a further socket per server queries that server only.
  public let observations: [NATMapping.Observation]

  /// The NAT mapping for one address family; nil if no rendezvous server of that family answered.
  public func mapping(ipv6: Bool) -> NATMapping? {
    NATMapping(observations.filter { $0.destination.isIPv6 == ipv6 })
  }

  /// The timeout for resolving a name.
  private static let namePatience = Duration.seconds(3)

  /// Queries all `names`, each `HOST:PORT`, and as many of the `remembered` names as a node would
  /// use, concurrently. Takes at most 5 s. Throws for a malformed name and if no socket can be
  /// opened.
  public static func ask(
    _ names: [String], remembered: [String] = []
  ) async throws(MusterError) -> RendezvousProbe {
    var endpoints: [PeerResolver.Endpoint] = []
    for name in names {
      let endpoint = try PeerResolver.Endpoint(name, option: "--rendezvous")
      if !endpoints.contains(endpoint) { endpoints.append(endpoint) }
    }
    var resolver = PeerResolver(endpoints: endpoints)
    resolver.add(remembered, for: nil, limit: Limits.rendezvous)
    let found = await resolver.resolve(within: namePatience)
    let addresses = found.flatMap(\.addresses).reduce(into: [Address]()) { addresses, address in
      if !addresses.contains(address) { addresses.append(address) }
    }
    let questioning: Questioning
    do {
      questioning = try await NIOThreadPool.singleton.runIfActive {
        var questioning = try Questioning(addresses)
        questioning.run()
        return questioning
      }
    } catch let error as MusterError {
      throw error
    } catch { throw MusterError("cannot ask rendezvous (\(error))", hint: "try again") }
    let reports = found.flatMap { entry, addresses in
      guard !addresses.isEmpty else {
        return [Report(name: entry.endpoint.text, address: nil, outcome: .unresolved)]
      }
      return addresses.map { address in
        Report(
          name: entry.endpoint.text, address: address, outcome: questioning.outcome(of: address))
      }
    }
    return RendezvousProbe(reports: reports, observations: questioning.observations)
  }
}

/// Sends hellos and collects answers until all rendezvous servers have answered or two seconds have
/// passed.
private struct Questioning: Sendable {
  private struct Question: Sendable {
    let address: Address
    let local: Address
    /// The index of the querying socket in `sockets`.
    let socket: Int
    /// The hellos sent; an answer echoes the token of its hello.
    var sent: [(token: UInt64, at: Instant)] = []
    var outcome = RendezvousProbe.Outcome.silent

    var isAnswered: Bool { if case .answered = outcome { true } else { false } }
  }

  private final class Socket: Sendable {
    let descriptor: Int32
    /// The source address of the socket's datagrams; for an unconnected socket only the port is
    /// known.
    let local: Address

    init?(isIPv6: Bool, connectedTo peer: Address? = nil) {
      let any = Address(host: isIPv6 ? .v6(high: 0, low: 0, zone: 0) : .v4(0), port: 0)
      let opened = Sockets.udp(any, reuse: false)
      // A socket with only one peer is connected, because Linux reports ICMP errors only to
      // connected sockets.
      _ = peer?.socketAddress.withSockAddr { connect(opened, $0, socklen_t($1)) }
      descriptor = opened
      local = Sockets.localAddress(opened) ?? any
      guard opened >= 0 else { return nil }
    }

    deinit { if descriptor >= 0 { close(descriptor) } }
  }

  private static let patience = Duration.seconds(2)
  /// The times at which hellos are sent, relative to the start.
  private static let tries = [Duration.zero, .milliseconds(500), .milliseconds(1200)]

  private var sockets: [Socket] = []
  private var questions: [Question] = []
  private var entropy = Entropy.system

  init(_ addresses: [Address]) throws(MusterError) {
    for isIPv6 in [false, true] {
      let some = addresses.filter { $0.isIPv6 == isIPv6 && $0.isUnicast }
      guard !some.isEmpty else { continue }
      let common = try add(Socket(isIPv6: isIPv6))
      for address in some {
        let own = try add(Socket(isIPv6: isIPv6, connectedTo: address))
        for index in [common, own] {
          // Both sockets use the same route to the address, hence the same source host.
          var local = sockets[own].local
          local.port = sockets[index].local.port
          questions.append(Question(address: address, local: local, socket: index))
        }
      }
    }
  }

  private mutating func add(_ socket: Socket?) throws(MusterError) -> Int {
    guard let socket else {
      throw MusterError("no free UDP port", hint: "end other programs, then try again")
    }
    sockets.append(socket)
    return sockets.count - 1
  }

  /// The combined result of both queries to one address: an answer, else the first error, else
  /// silence.
  func outcome(of address: Address) -> RendezvousProbe.Outcome {
    let outcomes = questions.filter { $0.address == address }.map(\.outcome)
    return outcomes.first { if case .answered = $0 { true } else { false } }
      ?? outcomes.first { $0 != .silent } ?? .silent
  }

  var observations: [NATMapping.Observation] {
    questions.compactMap { question in
      guard case .answered(let seen, _) = question.outcome, question.local.isUnicast else {
        return nil
      }
      return NATMapping.Observation(
        local: question.local, destination: question.address, seen: seen)
    }
  }

  /// Blocks until all rendezvous servers have answered or the timeout has passed.
  mutating func run() {
    let start = BootClock.now
    var tries = Self.tries[...]
    while questions.contains(where: { !$0.isAnswered }) {
      let elapsed = BootClock.now - start
      guard elapsed < Self.patience else { return }
      if let due = tries.first, due <= elapsed {
        tries.removeFirst()
        askAll()
      }
      let next = min(tries.first ?? Self.patience, Self.patience)
      wait(atMost: next - (BootClock.now - start))
    }
  }

  private mutating func askAll() {
    for index in questions.indices where !questions[index].isAnswered {
      let token = entropy.u64()
      questions[index].sent.append((token, BootClock.now))
      let hello = RendezvousHello(token: token).encoded()
      let descriptor = sockets[questions[index].socket].descriptor
      let sent = questions[index].address.socketAddress.withSockAddr { address, length in
        sendto(descriptor, hello, hello.count, 0, address, socklen_t(length))
      }
      if sent < 0 { note(errno, at: index) }
    }
  }

  private mutating func wait(atMost duration: Duration) {
    var polled = sockets.map { pollfd(fd: $0.descriptor, events: Int16(POLLIN), revents: 0) }
    let milliseconds = Int32(clamping: Int64(max(duration, .zero).inMilliseconds.rounded(.up)))
    guard poll(&polled, nfds_t(polled.count), milliseconds) > 0 else { return }
    for index in polled.indices where polled[index].revents != 0 { read(index) }
  }

  /// Reads one datagram or one error; a flood cannot delay the end, because the time is checked
  /// between reads.
  private mutating func read(_ socket: Int) {
    var buffer = [UInt8](repeating: 0, count: Limits.datagramBytes)
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let (count, source) = withUnsafeMutablePointer(to: &storage) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { raw in
        let count = recvfrom(
          sockets[socket].descriptor, &buffer, buffer.count, 0, raw, &length)
        return (count, count < 0 ? nil : Address(raw))
      }
    }
    let code = errno
    for index in questions.indices where questions[index].socket == socket {
      if count < 0 {
        note(code, at: index)
      } else if source == questions[index].address, !questions[index].isAnswered {
        receive(Array(buffer.prefix(count)), at: index)
      }
    }
  }

  private mutating func receive(_ datagram: [UInt8], at index: Int) {
    guard let cookie = try? RendezvousCookie(decoding: datagram), cookie.seen.isUnicast,
      let sent = questions[index].sent.first(where: { $0.token == cookie.token })
    else {
      questions[index].outcome = .invalidResponse
      return
    }
    questions[index].outcome = .answered(
      seen: cookie.seen.withoutZone, roundTrip: BootClock.now - sent.at)
  }

  private mutating func note(_ code: Int32, at index: Int) {
    guard code != EAGAIN, code != EINTR, questions[index].outcome == .silent else { return }
    questions[index].outcome =
      code == ECONNREFUSED ? .refused : .unreachable(SystemError.text(of: code))
  }
}
