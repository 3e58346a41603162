import Muster
import MusterBase
import MusterDiscovery
import MusterNetwork

extension Diagnostics {
  /// Checks whether the gateway opens a port on request. The check opens `port`, which must not be
  /// in use, and closes the port again. `mapping` is this host's NAT mapping on IPv4 as observed by
  /// rendezvous servers.
  static func gateway(
    port: UInt16, interfaces: [String], seenAt mapping: NATMapping
  ) async -> [Finding] {
    let mapper = PortMapper(port: port, interfaces: interfaces)
    guard let opened = await mapper.map() else {
      return [
        Finding(
          subject: "gateway", verdict: .note, fact: "opens no port when asked (NAT-PMP, UPnP)",
          advice: "switch that on in the router, or forward the port of --listen there")
      ]
    }
    await mapper.unmap(opened)
    let host = opened.outside.hostText
    let isLast = mapping.outside.contains { $0.hostText == host }
    return [
      Finding(
        subject: "gateway", verdict: isLast ? .good : .note,
        fact: "opens a port when asked (\(opened.method.rawValue)), at \(host)"
          + (isLast ? ": a node has it do so, and everyone can reach it" : ""),
        advice: isLast ? "" : "others see another address: a second NAT, which this does not open")
    ]
  }
}
