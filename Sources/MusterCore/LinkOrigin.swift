import MusterBase

/// To which end a link counts where links are short: a host, of which those on this machine are
/// told apart by their ports; or the relaying member.
enum LinkOrigin: Equatable, Sendable {
  case host(Address)
  case relay(NodeID)

  init(_ route: Route) {
    switch route {
    case .direct(let address):
      self = .host(address.isLoopback ? address : Address(host: address.host, port: 0))
    case .relayed(_, let relay, _): self = .relay(relay)
    }
  }
}
