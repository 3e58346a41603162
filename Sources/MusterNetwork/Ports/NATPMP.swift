import CNATPMP
import Glibc
import MusterBase
import MusterDevices

/// Asks a gateway by NAT-PMP (RFC 6886). Gateways that speak PCP answer it as well (RFC 6887
/// appendix A). Every function blocks, for as long as it is told.
package enum NATPMP {
  /// A gateway that has said nothing to two questions does not know them: RFC 6886 3.1 has the
  /// first wait be 0.25 s and the second one twice that.
  private static let patience = Duration.milliseconds(750)

  /// A mapping for this host's UDP port `port`, at port `requested` outside if that is free, else at one
  /// that the gateway chooses. Takes back one that is asked for and not heard of, if it is new or
  /// the node is ending; not so where an earlier one is in use.
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

  /// Takes the mapping of `port` back: a lifetime of 0 (RFC 6886 3.4).
  package static func unmap(_ port: UInt16, through gateway: Address, until deadline: Instant) {
    guard var session = Session(gateway) else { return }
    defer { session.close() }
    guard session.ask({ sendnewportmappingrequest($0, NATPMP_PROTOCOL_UDP, port, 0, 0) }) else {
      return
    }
    _ = session.answer(
      NATPMP_RESPTYPE_UDPPORTMAPPING, to: PortQuestion(deadline: deadline) { false })
  }

  /// A socket connected to the gateway: the kernel lets no one else's answers in.
  private struct Session {
    private var raw = natpmp_t()
    /// How soon a node that is ending is noticed.
    private static let glance = Duration.milliseconds(50)

    package init?(_ gateway: Address) {
      guard case .v4(let host) = gateway.host, initnatpmp(&raw, 1, host.bigEndian) == 0 else {
        return nil
      }
    }

    package mutating func close() { closenatpmp(&raw) }

    package mutating func ask(_ send: (UnsafeMutablePointer<natpmp_t>) -> Int32) -> Bool {
      send(&raw) > 0
    }

    /// What the gateway answers; the library asks again meanwhile. nil when it refuses, or says
    /// nothing until then. Of a question that was asked again, a slow gateway's second answer comes
    /// when the next one is asked: answers of other types are read past.
    package mutating func answer(_ type: Int32, to question: PortQuestion) -> natpmpresp_t? {
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
        // The library takes any answer for the one to its question.
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
  /// Rounded up, so that who waits for so long does not wake too early.
  fileprivate var wholeMilliseconds: Int64 { (wholeNanoseconds + 999_999) / 1_000_000 }
}
