import CNATPMP
import MusterBase
import MusterSystem

/// A client for NAT-PMP (RFC 6886), which gateways with PCP also support (RFC 6887 appendix A). All
/// functions block until the given deadline at most.
package enum NATPMP {
  /// The time without an answer after which the gateway is assumed not to support NAT-PMP: 0.25 s
  /// for the first request and twice that for the second (RFC 6886 section 3.1).
  private static let patience = Duration.milliseconds(750)

  /// Maps external port `requested`, or a port that the gateway chooses if `requested` is taken, to
  /// this host's UDP port `port` for `lease` seconds. Without a usable answer, withdraws a mapping
  /// that is new, because it may have been granted. A renewed mapping is in use and is withdrawn
  /// only if the node is stopping.
  package static func map(
    _ port: UInt16, to requested: UInt16, through gateway: Address, lease: UInt32,
    isNew: Bool, _ question: PortQuestion
  ) -> PortMapping? {
    guard var session = Session(gateway) else { return nil }
    defer { session.close() }
    let first = question.until(BootClock.now + patience)
    guard !first.isOver, session.ask({ sendpublicaddressrequest($0) }),
      let first = session.answer(NATPMP_RESPTYPE_PUBLICADDRESS, to: first)
    else { return nil }
    let host = UInt32(bigEndian: first.pnu.publicaddress.addr.s_addr)
    guard host != 0, !question.isOver,
      session.ask({ sendnewportmappingrequest($0, NATPMP_PROTOCOL_UDP, port, requested, lease) })
    else { return nil }
    let second = session.answer(NATPMP_RESPTYPE_UDPPORTMAPPING, to: question)
    guard let mapped = second?.pnu.newportmapping, mapped.privateport == port,
      mapped.mappedpublicport != 0, mapped.lifetime != 0
    else {
      if isNew || question.isCancelled() {
        _ = session.ask { sendnewportmappingrequest($0, NATPMP_PROTOCOL_UDP, port, 0, 0) }
      }
      return nil
    }
    return PortMapping(
      method: .natPMP, outside: Address(host: .v4(host), port: mapped.mappedpublicport),
      lifetime: .seconds(Int64(mapped.lifetime)))
  }

  /// Deletes the mapping of `port`: a request with lifetime 0 (RFC 6886 section 3.4).
  package static func unmap(_ port: UInt16, through gateway: Address, until deadline: Instant) {
    guard var session = Session(gateway) else { return }
    defer { session.close() }
    guard session.ask({ sendnewportmappingrequest($0, NATPMP_PROTOCOL_UDP, port, 0, 0) }) else {
      return
    }
    _ = session.answer(
      NATPMP_RESPTYPE_UDPPORTMAPPING, to: PortQuestion(deadline: deadline) { false })
  }

  /// A connected socket: the kernel drops datagrams from hosts other than the gateway.
  private struct Session {
    private var raw = natpmp_t()
    /// The interval at which cancellation is checked.
    private static let glance = Duration.milliseconds(50)

    /// Opens the socket; nil if that fails.
    init?(_ gateway: Address) {
      guard case .v4(let host) = gateway.host, initnatpmp(&raw, 1, host.bigEndian) == 0 else {
        return nil
      }
    }

    /// Closes the socket.
    mutating func close() { closenatpmp(&raw) }

    /// Sends a request with the given function of the library; false if that fails.
    mutating func ask(_ send: (UnsafeMutablePointer<natpmp_t>) -> Int32) -> Bool {
      send(&raw) > 0
    }

    /// The gateway's answer; the library repeats the request meanwhile. Nil if the gateway refuses
    /// or `question` is over. After a repeated request a slow gateway answers twice, and the second
    /// answer arrives during the next request. Answers of another type are therefore skipped.
    mutating func answer(_ type: Int32, to question: PortQuestion) -> natpmpresp_t? {
      var response = natpmpresp_t()
      while !question.isOver {
        let left = min(question.deadline - BootClock.now, Self.glance)
        var wait = timeval()
        guard getnatpmprequesttimeout(&raw, &wait) == 0 else { return nil }
        let untilRetry = Duration.seconds(wait.tv_sec) + .microseconds(wait.tv_usec)
        var ready = pollfd(fd: raw.s, events: Int16(POLLIN), revents: 0)
        poll(&ready, 1, Int32(clamping: max(min(left, untilRetry), .zero).wholeMilliseconds))
        switch readnatpmpresponseorretry(&raw, &response) {
        case 0 where Int32(response.type) == type: return response
        // The library takes any answer for the answer to the pending request.
        case 0: raw.has_pending_request = 1
        case NATPMP_TRYAGAIN: continue
        default: return nil
        }
      }
      return nil
    }
  }
}

extension Duration {
  /// The duration in milliseconds, rounded up so that a wait does not end too early.
  fileprivate var wholeMilliseconds: Int64 { (wholeNanoseconds + 999_999) / 1_000_000 }
}
