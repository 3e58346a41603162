import CNATPMP
import Glibc
import MusterBase
import MusterDevices

/// Asks a gateway by NAT-PMP (RFC 6886). Gateways that speak PCP answer it as well (RFC 6887
/// appendix A). Every function blocks, for as long as it is told.
enum NATPMP {
  /// A gateway that has said nothing to two questions does not know them: RFC 6886 3.1 has the
  /// first wait be 0.25 s and the second one twice that.
  private static let patience = Duration.milliseconds(750)

  /// A mapping for this host's UDP port `port`, at port `wish` outside if that is free, else at one
  /// that the gateway chooses.
  static func map(
    _ port: UInt16, to wish: UInt16, through gateway: Address, lease: UInt32,
    until deadline: Instant
  ) -> PortMapping? {
    guard var session = Session(gateway) else { return nil }
    defer { session.close() }
    let isOld = min(deadline, BootClock.now + patience)
    guard session.ask({ sendpublicaddressrequest($0) }),
      let first = session.answer(until: isOld), first.type == NATPMP_RESPTYPE_PUBLICADDRESS
    else { return nil }
    let host = UInt32(bigEndian: first.pnu.publicaddress.addr.s_addr)
    guard host != 0,
      session.ask({ sendnewportmappingrequest($0, NATPMP_PROTOCOL_UDP, port, wish, lease) }),
      let second = session.answer(until: deadline), second.type == NATPMP_RESPTYPE_UDPPORTMAPPING
    else { return nil }
    let mapped = second.pnu.newportmapping
    guard mapped.privateport == port, mapped.mappedpublicport != 0, mapped.lifetime != 0 else {
      return nil
    }
    return PortMapping(
      way: .natPMP, outside: Address(host: .v4(host), port: mapped.mappedpublicport),
      lifetime: .seconds(Int64(mapped.lifetime)))
  }

  /// Takes the mapping of `port` back: a lifetime of 0 (RFC 6886 3.4).
  static func unmap(_ port: UInt16, through gateway: Address, until deadline: Instant) {
    guard var session = Session(gateway) else { return }
    defer { session.close() }
    guard session.ask({ sendnewportmappingrequest($0, NATPMP_PROTOCOL_UDP, port, 0, 0) }) else {
      return
    }
    _ = session.answer(until: deadline)
  }

  /// A socket connected to the gateway: the kernel lets no one else's answers in.
  private struct Session {
    private var raw = natpmp_t()

    init?(_ gateway: Address) {
      guard case .v4(let host) = gateway.host, initnatpmp(&raw, 1, host.bigEndian) == 0 else {
        return nil
      }
    }

    mutating func close() { closenatpmp(&raw) }

    mutating func ask(_ send: (UnsafeMutablePointer<natpmp_t>) -> Int32) -> Bool { send(&raw) > 0 }

    /// What the gateway answers; the library asks again meanwhile. nil when it refuses, or says
    /// nothing until then.
    mutating func answer(until deadline: Instant) -> natpmpresp_t? {
      var response = natpmpresp_t()
      while true {
        let left = deadline - BootClock.now
        guard left > .zero else { return nil }
        var wait = timeval()
        guard getnatpmprequesttimeout(&raw, &wait) == 0 else { return nil }
        let untilRetry = Duration.seconds(wait.tv_sec) + .microseconds(wait.tv_usec)
        var ready = pollfd(fd: raw.s, events: Int16(POLLIN), revents: 0)
        poll(&ready, 1, Int32(clamping: min(left, max(untilRetry, .zero)).wholeMilliseconds))
        switch readnatpmpresponseorretry(&raw, &response) {
        case 0: return response
        case NATPMP_TRYAGAIN: continue
        default: return nil
        }
      }
    }
  }
}

extension Duration {
  /// Rounded up, so that who waits for so long does not wake too early.
  fileprivate var wholeMilliseconds: Int64 { (wholeNanoseconds + 999_999) / 1_000_000 }
}
