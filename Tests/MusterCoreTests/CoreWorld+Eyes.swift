import MusterBase
import MusterCore
import MusterCrypto
import MusterLink
import MusterWire

extension CoreWorld {
  /// A copy of a node's link engine, with the same keys and random numbers and given the same
  /// datagrams, and the payloads that it opened. The copy is exact only for a node that was the
  /// responder of all handshakes.
  func eyes(of index: Int, _ keys: [ChannelKey]) -> Eyes {
    // The order of these draws is that of `Node.init`.
    var entropy = entropy(of: index)
    let bootID = entropy.u64()
    var prng = PRNG(seed: jitter(of: index))
    _ = (entropy.fork(), prng.next())
    var engine = LinkEngine(
      identity: hosts[index].node.identity, bootID: bootID, entropy: entropy.fork(),
      seed: prng.next())
    for key in keys { engine.open(key) }
    var seen: [Seen] = []
    var answers: [[UInt8]] = []
    for flight in hosts[index].received {
      for output in engine.receive(
        flight.datagram, from: .direct(flight.from), at: flight.arrivesAt)
      {
        switch output {
        case .delivered(let link, let payload, _, let packet):
          seen.append(
            Seen(link: link, payload: payload, packet: packet, at: flight.arrivesAt))
        case .send(let datagram, _) where DatagramKind(of: datagram) == .handshakeResponse:
          answers.append(datagram)
        default: break
        }
      }
    }
    let given = hosts[index].sent.filter { $0.kind == .handshakeResponse }.map(\.datagram)
    return Eyes(engine: engine, seen: seen, isSame: !given.isEmpty && given == answers)
  }

  struct Eyes: ~Copyable {
    let engine: LinkEngine
    let seen: [Seen]
    /// Whether the copy sent the same handshake responses as the node's own engine.
    let isSame: Bool
  }

  struct Seen {
    let link: SessionLinkID
    let payload: [UInt8]
    let packet: ReceivedPacket
    let at: Instant
  }
}
