import MusterBase
import MusterCrypto
import MusterWire

/// Data datagrams and the path that they take.
extension LinkEngine {
  mutating func receiveData(
    _ datagram: [UInt8], from source: Address, at now: Instant
  ) -> [Output] {
    guard let header = DataHeader(datagram) else {
      counters.malformed += 1
      return []
    }
    guard let id = indices[header.receiverIndex], let place = links.index(of: id) else {
      counters.unknownIndex += 1
      return []
    }
    // One change in place: reading the link out of its table would copy it.
    let opened = links[at: place].open(
      datagram, header, from: source, at: now, lifetime: configuration.rejectAfter)
    switch opened {
    case .unknown: counters.unknownIndex += 1
    case .expired: counters.expired += 1
    case .forged: counters.forged += 1
    case .replayed: counters.replayedData += 1
    case .payload(let payload, let slot, let isElsewhere):
      return accept(payload, place, slot, isElsewhere, from: source, at: now)
    }
    return []
  }

  /// An authentic and new payload: confirmation, content, path, in this order.
  private mutating func accept(
    _ payload: [UInt8], _ place: Int, _ slot: Link.Slot, _ isElsewhere: Bool,
    from source: Address, at now: Instant
  ) -> [Output] {
    let id = links.keys[place]
    var outputs: [Output] = []
    if case .unconfirmed(let number) = slot { outputs = confirm(number, place, at: now) }
    switch PayloadKind(of: payload) {
    case .keepalive: break
    case .control, .relay, .rtp, .rtcp: outputs.append(.delivered(id, payload))
    case .path: outputs += handlePath(payload, place, slot, from: source, at: now)
    case nil: counters.unknownPayloads += 1
    }
    // What it carried may have closed the link or moved its path.
    guard isElsewhere, links.index(of: id) == place, links[at: place].address != source else {
      return outputs
    }
    return outputs + challenge(place, source, at: now)
  }

  /// The initiator has used the session that it was given: it counts from now on.
  private mutating func confirm(_ number: Int, _ place: Int, at now: Instant) -> [Output] {
    let session = links[at: place].unconfirmed[number]
    for older in links[at: place].unconfirmed[..<number] { forget(older) }
    links[at: place].unconfirmed.removeFirst(number + 1)
    return install(session, place, at: now)
  }

  private mutating func handlePath(
    _ payload: [UInt8], _ place: Int, _ slot: Link.Slot, from source: Address, at now: Instant
  ) -> [Output] {
    guard let message = try? PathMessage(decoding: payload) else {
      counters.unknownPayloads += 1
      return []
    }
    switch message {
    case .challenge(let token):
      // Back to where it came from: that is the path in question (RFC 9000 8.2.2).
      guard source.isUnicast,
        source == links[at: place].address || links[at: place].pathAnswers.take(at: now)
      else { return [] }
      return send(PathMessage.response(token).encoded(), place, to: source, at: now)
    case .response(let token): return finishChallenge(token, place, from: source)
    case .close:
      // A late farewell under an earlier session does not end what was begun after it.
      return slot == .previous ? [] : remove(links[at: place].id, reason: .left)
    }
  }

  /// Asks the peer whether it is really at an address; the old one stays in use meanwhile.
  mutating func challenge(
    _ place: Int, _ address: Address, at now: Instant
  ) -> [Output] {
    guard address.isUnicast,
      links[at: place].probe.map({ now - $0.sentAt >= configuration.challengeInterval }) ?? true
    else { return [] }
    let token = entropy.u64()
    links[at: place].probe = Link.Probe(address: address, token: token, sentAt: now)
    counters.challengesSent += 1
    return send(PathMessage.challenge(token).encoded(), place, to: address, at: now)
  }

  private mutating func finishChallenge(
    _ token: UInt64, _ place: Int, from source: Address
  ) -> [Output] {
    guard let probe = links[at: place].probe, probe.token == token, probe.address == source else {
      counters.strayPathResponses += 1
      return []
    }
    links[at: place].probe = nil
    return move(place, to: source)
  }

  /// Asks the peer to answer from another address, or by another way, to which the link then moves.
  public mutating func probe(_ link: LinkID, at address: Address, now: Instant) -> [Output] {
    guard let place = links.index(of: link) else { return [] }
    return challenge(place, address, at: now)
  }

  /// Discovery saw the peer while its link is quiet: both may have moved, so that neither hears the
  /// other, or the way between them is whole again. A peer that does not answer may have lost the
  /// session, as one does that left the channel and came back: it is offered a new one.
  mutating func probeIfQuiet(
    _ place: Int, _ address: Address, bootID: UInt64, at now: Instant
  ) -> [Output] {
    let link = links[at: place]
    // A way of its own is better than one through somebody.
    if link.address.detour != nil, address.detour == nil {
      return challenge(place, address, at: now)
    }
    guard now - link.lastHeard >= configuration.quietBeforeProbe else { return [] }
    links[at: place].pending?.address = address
    let isUnanswered =
      link.probe.map { now - $0.sentAt >= configuration.challengeInterval } ?? false
    let challenges = challenge(place, address, at: now)
    guard isUnanswered, link.pending == nil else { return challenges }
    return challenges + startHandshake(place, bootID: bootID, address: address, at: now)
  }
}
