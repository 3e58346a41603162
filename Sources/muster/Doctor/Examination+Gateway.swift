import Muster
import MusterBase
import MusterMesh

extension Examination {
  /// Whether the gateway opens a port when it is asked. It opens one, at which nobody listens, and
  /// closes it at once. `mapping` is how rendezvous see this host on IPv4.
  static func gateway(interfaces: [String], seenAt mapping: NATMapping) async -> [Finding] {
    let mapper = PortMapper(port: RendezvousHost.port, interfaces: interfaces)
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
        fact: "opens ports by \(opened.way.rawValue), at \(host)",
        advice: isLast ? "" : "others see another address: a second NAT, which this does not open")
    ]
  }
}
