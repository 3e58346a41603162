import MusterBase
import MusterLink
import MusterMedia
import MusterMesh
import MusterWire

extension Node {
  /// Carries out what discovery asks for.
  mutating func perform(_ outputs: [Discovery.Output], at now: Instant, _ out: inout [Output]) {
    for output in outputs {
      switch output {
      case .broadcast(let datagram): out.append(.broadcast(datagram))
      case .send(let datagram, let address): out.append(.send(datagram, to: address))
      case .found(let peer, let bootID, let channel, let address):
        guard peers.count < Limits.links else { continue }
        perform(
          links.connect(to: peer, bootID: bootID, in: channel, at: address, now: now), at: now, &out
        )
      }
    }
  }

  /// Carries out what the links ask for.
  mutating func perform(_ outputs: [LinkEngine.Output], at now: Instant, _ out: inout [Output]) {
    for output in outputs {
      switch output {
      case .send(let datagram, let address): out.append(.send(datagram, to: address))
      case .established(let link, let address, _): linkUp(link, at: address, now, &out)
      case .moved: discovery.setLinked(linkedAddresses)
      case .delivered(let link, let payload): receive(payload, over: link, at: now, &out)
      case .closed(let link, let reason): linkDown(link, reason, at: now, &out)
      }
    }
  }

  private var linkedAddresses: [Address] { peers.keys.compactMap { links.address(of: $0) } }

  private mutating func linkUp(
    _ link: LinkID, at address: Address, _ now: Instant, _ out: inout [Output]
  ) {
    guard channels[link.channel] != nil else { return }
    peers[link] = Peer(upSince: now)
    discovery.setLinked(linkedAddresses)
    out.append(.event(.linkUp(link.peer, address), in: link.channel))
    let outputs = channels.update(link.channel) { $0.state.linkUp(link.peer, at: now) } ?? []
    perform(outputs, in: link.channel, at: now, &out)
    tick(peer: link, at: now, &out)
  }

  private mutating func linkDown(
    _ link: LinkID, _ reason: LinkCloseReason, at now: Instant, _ out: inout [Output]
  ) {
    guard peers[link] != nil else { return }
    endMedia(with: link, at: now, &out)
    peers[link] = nil
    discovery.setLinked(linkedAddresses)
    out.append(.event(.linkDown(link.peer, reason), in: link.channel))
    let leaveReason: LeaveReason =
      switch reason {
      case .left, .local: .left
      case .timedOut: .crashed
      case .replaced: .replaced
      }
    let outputs =
      channels.update(link.channel) {
        $0.state.linkDown(link.peer, reason: leaveReason, at: now)
      } ?? []
    perform(outputs, in: link.channel, at: now, &out)
    publish(at: now, &out)
  }

  /// A payload that came over a link, opened and fresh.
  private mutating func receive(
    _ payload: [UInt8], over link: LinkID, at now: Instant, _ out: inout [Output]
  ) {
    switch PayloadKind(of: payload) {
    case .rtp: receiveRTP(payload, over: link, at: now, &out)
    case .rtcp: receiveRTCP(payload, over: link, at: now, &out)
    case .control:
      guard let messages = try? Control.decode(payload) else { return }
      for message in messages { receive(message, over: link, at: now, &out) }
    case .keepalive, .path, nil: break
    }
  }

  private mutating func receive(
    _ message: Control, over link: LinkID, at now: Instant, _ out: inout [Output]
  ) {
    switch message {
    case .hello(let signed):
      let outputs =
        channels.update(link.channel) {
          $0.state.receiveHello(signed, from: link.peer, at: now)
        } ?? []
      perform(outputs, in: link.channel, at: now, &out)
    case .helloReceived(let bootID, let sequence):
      let outputs =
        channels.update(link.channel) {
          $0.state.receiveAcknowledgement(
            bootID: bootID, sequence: sequence, from: link.peer, at: now)
        } ?? []
      perform(outputs, in: link.channel, at: now, &out)
    case .wish(let wish):
      let changed =
        peers.update(link) { peer in
          defer { peer.wish = wish }
          return peer.wish != wish
        } ?? false
      if changed { publish(at: now, &out) }
    case .ping(let token): send([.pong(token)], over: link, at: now, &out)
    case .pong(let token):
      _ = peers.update(link) { $0.receivePong(token, at: now) }
      if let roundTrip = peers[link]?.roundTrip {
        _ = peers.update(link) { $0.incoming?.video.setRoundTrip(roundTrip) }
      }
    }
  }

  /// Seals control messages for one peer; dropped when the link has no session.
  mutating func send(
    _ messages: [Control], over link: LinkID, at now: Instant, _ out: inout [Output]
  ) {
    send(Control.encode(messages), [], over: link, at: now, &out)
  }

  /// Seals a header and a body as one datagram; false when the link has no session.
  @discardableResult
  mutating func send(
    _ header: [UInt8], _ body: ArraySlice<UInt8>, over link: LinkID, at now: Instant,
    _ out: inout [Output]
  ) -> Bool {
    guard let sealed = links.seal(header, body, on: link, at: now) else { return false }
    out.append(.send(sealed.datagram, to: sealed.to))
    return true
  }

  /// Pings, gives up silent links, reports and asks again where something is due.
  mutating func tick(peer link: LinkID, at now: Instant, _ out: inout [Output]) {
    guard let index = peers.index(of: link) else { return }
    if let heard = links.lastHeard(link), now - heard >= configuration.silenceLimit {
      perform(links.close(link, reason: .timedOut, at: now), at: now, &out)
      return
    }
    if peers[at: index].nextPing <= now {
      peers[at: index].nextPing = now + configuration.pingInterval
      var messages: [Control] = [.ping(UInt64(bitPattern: now.nanoseconds))]
      // Repeated with every ping, so that a lost wish is a wish delayed.
      if let incoming = peers[at: index].incoming { messages.append(.wish(incoming.wish)) }
      send(messages, over: link, at: now, &out)
    }
    tickMedia(of: link, at: now, &out)
  }
}
