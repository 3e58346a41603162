import MusterBase
import MusterCrypto
import MusterWire

/// Data datagrams.
extension LinkEngine {
  mutating func receiveData(
    _ datagram: [UInt8], from source: Address, at now: Instant
  ) -> [Output] {
    guard let header = DataHeader(datagram) else {
      counters.malformed += 1
      return []
    }
    guard let id = indices[header.receiverIndex], let position = links.index(of: id) else {
      counters.unknownIndex += 1
      return []
    }
    // One change in place: reading the link out of its table would copy it.
    let opened = links[at: position].open(
      datagram, header, from: source, at: now, lifetime: configuration.rejectAfter)
    switch opened {
    case .unknown: counters.unknownIndex += 1
    case .expired: counters.expired += 1
    case .forged: counters.forged += 1
    case .replayed: counters.replayedData += 1
    case .payload(let payload, let slot, let isElsewhere):
      return accept(payload, position, slot, isElsewhere, from: source, at: now)
    }
    return []
  }

  /// An authentic and new payload: confirmation, content, path, in this order.
  private mutating func accept(
    _ payload: [UInt8], _ position: Int, _ slot: Link.Slot, _ isElsewhere: Bool,
    from source: Address, at now: Instant
  ) -> [Output] {
    let id = links.keys[position]
    var outputs: [Output] = []
    if case .unconfirmed(let number) = slot { outputs = confirm(number, position, at: now) }
    switch PayloadKind(of: payload) {
    case .keepalive: break
    case .control, .relay, .rtp, .rtcp: outputs.append(.delivered(id, payload))
    case .path: outputs += handlePath(payload, position, slot, from: source, at: now)
    case nil: counters.unknownPayloads += 1
    }
    // A challenge or its answer is not yet a peer that has moved (RFC 9000 9.1), but what comes
    // through a neighbour comes for a reason. What it carried may have closed the link or moved its
    // path.
    guard isElsewhere, source.relayed != nil || PayloadKind(of: payload) != .path,
      links.index(of: id) == position, links[at: position].address != source
    else {
      return outputs
    }
    return outputs + follow(position, to: source, at: now)
  }

  /// The initiator has used the session that it was given: it counts from now on.
  private mutating func confirm(_ number: Int, _ position: Int, at now: Instant) -> [Output] {
    let session = links[at: position].unconfirmed[number]
    for older in links[at: position].unconfirmed[..<number] { forget(older) }
    links[at: position].unconfirmed.removeFirst(number + 1)
    return install(session, position, at: now)
  }
}
