import MusterBase
import MusterCrypto
import MusterWire

/// The processing of transport packets.
extension LinkEngine {
  mutating func receiveData(
    _ datagram: [UInt8], from source: Route, arrivedAt: Instant, at now: Instant,
    into outputs: inout [Output]
  ) {
    guard let header = DataHeader(datagram) else {
      counters.malformed += 1
      return
    }
    guard let id = indices[header.receiverIndex], source.mayLead(to: id.peer),
      let position = links.index(of: id)
    else {
      counters.unknownIndex += 1
      return
    }
    // The link is modified in place, because taking the link out of its table would copy it.
    let opened = links[at: position].open(
      datagram, header, from: source, at: now, lifetime: configuration.rejectAfter)
    switch opened {
    case .unknown: counters.unknownIndex += 1
    case .expired: counters.expired += 1
    case .forged: counters.forged += 1
    case .replayed: counters.replayedData += 1
    case .payload(let payload, let slot, let capabilities, let isElsewhere):
      paths.change(PathID(peer: id.peer, route: source), at: now) {
        $0.received(datagram.count, number: header.counter, at: now)
      }
      let packet = ReceivedPacket(
        session: header.receiverIndex, number: header.counter, bytes: datagram.count,
        capabilities: capabilities, arrivedAt: arrivedAt)
      let arrival = Arrival(
        payload: payload, slot: slot, isElsewhere: isElsewhere, packet: packet)
      accept(arrival, position, from: source, at: now, into: &outputs)
    }
  }

  /// An authenticated payload that is not a replay, with its session, its packet and whether it
  /// arrived over a route other than the link's.
  private struct Arrival {
    let payload: [UInt8]
    let slot: Link.Slot
    let isElsewhere: Bool
    let packet: ReceivedPacket
  }

  /// Confirms the session if necessary, handles the payload, and then follows a change of route.
  private mutating func accept(
    _ arrival: Arrival, _ position: Int, from source: Route, at now: Instant,
    into outputs: inout [Output]
  ) {
    let id = links.keys[position]
    let payload = arrival.payload
    if case .unconfirmed(let number) = arrival.slot {
      outputs += confirm(number, position, at: now)
    }
    outputs.append(.delivered(id, payload, over: source, arrival.packet))
    let kind = PayloadKind(of: payload)
    switch kind {
    case .keepalive, .control, .relay, .feedback, .rtp, .rtcp: break
    case .path: outputs += handlePath(payload, position, arrival.slot, from: source, at: now)
    case nil: counters.unknownPayloads += 1
    }
    // A challenge or a response alone does not show that the peer has moved (RFC 9000 section 9.1:
    // probing packets), except through a relay, which a peer uses only without a working direct
    // path. The payload may have closed the link or changed its route.
    guard arrival.isElsewhere, !source.isDirect || kind != .path,
      links.index(of: id) == position, links[at: position].route != source
    else { return }
    outputs += follow(position, to: source, at: now)
  }

  /// Makes a newly confirmed session the current session, and discards older unconfirmed sessions.
  private mutating func confirm(_ number: Int, _ position: Int, at now: Instant) -> [Output] {
    let session = links[at: position].unconfirmed[number]
    for older in links[at: position].unconfirmed[..<number] { forget(older) }
    links[at: position].unconfirmed.removeFirst(number + 1)
    return install(session, position, at: now)
  }
}
