import MusterBase
import MusterCore
import MusterCrypto
import MusterMesh
import MusterWire

/// What people do with their nodes.
extension Simulation {
  mutating func handle(_ event: Event) {
    switch event {
    case .start(let place): start(place)
    case .act: act()
    case .fault(let fault): strike(fault)
    case .heal: healCut()
    case .unblock(let from, let to): unblock(from: from, to: to)
    case .restart(let place, let loss): restart(place, loss)
    case .finishLeaving(let place, let run, let patience):
      finishLeaving(place, run: run, patience: patience)
    case .rejoin(let place, let run): rejoin(place, run: run)
    case .remove: removeSomebody()
    case .picture(let place, let run): takePicture(place, run: run)
    case .sound(let place, let run, let packetsLeft, let level):
      takeSound(place, run: run, packetsLeft: packetsLeft, level: level)
    case .check: check()
    case .calm: calm()
    }
  }

  /// A process starts and joins.
  mutating func start(_ place: Int) {
    guard nodes[place].node == nil else { return }
    nodes[place].run += 1
    let run = nodes[place].run
    let layers = scenario.hasMedia ? prng.below(4) : 0
    nodes[place].source = SyntheticSource(
      sender: UInt8(place), run: UInt8(truncatingIfNeeded: run), layers: layers)
    nodes[place].isVideoMuted = false
    nodes[place].isAudioMuted = false
    nodes[place].events = EventChecker()
    var configuration = Node.Configuration()
    configuration.name = nodes[place].name
    configuration.flaw = options.flaw
    configuration.ignoresOwnRole = place == scenario.lawless
    nodes[place].node = Node(
      identity: nodes[place].identity, entropy: .seeded(prng.next()), seed: prng.next(),
      configuration: configuration)
    frameChecker.restarted(place)
    note(nodes[place].label, "starts, run \(run)")
    let own = nodes[place].address
    let offered = nodes[place].source.layers
    let hasAudio = scenario.hasMedia
    input(place) { $0.setOwnAddresses([own], at: $1) }
    input(place) {
      $0.setSources(layers: offered, isPattern: false, hasAudio: hasAudio, at: $1)
    }
    setWallClock(place, error: 0)
    join(place)
    if scenario.usesPeers {
      let others = nodes.filter { $0.place != place }.map(\.address)
      input(place) { $0.setPeers(others, at: $1) }
    }
    startMedia(place, run: run)
  }

  mutating func join(_ place: Int) {
    nodes[place].isInChannel = true
    nodes[place].refusals = []
    settling.changed(at: now)
    if nodes[place].showsInvite { noteInvite(of: place) }
    let setup = nodes[place].setup(of: channel)
    let call = nodes[place].wantsCall
    input(place) { $0.join(setup, call: call, at: $1) }
  }

  mutating func setWallClock(_ place: Int, error milliseconds: Int64) {
    let elapsed = Int64(clamping: now.nanoseconds / 1_000_000)
    let wall = UInt64(clamping: Int64(WallTime.base) * 1000 &+ elapsed &+ milliseconds)
    input(place) { node, clock in
      node.setWallClock(millisecondsSince1970: wall, at: clock)
      return []
    }
  }

  /// One action of one node.
  private mutating func act() {
    guard !isCalm else { return }
    let pause = Duration.milliseconds(4000 / nodes.count)
    schedule(.act, in: prng.duration(.milliseconds(50), pause))
    let place = prng.below(nodes.count)
    let action = prng.below(scenario.hasMedia ? 12 : 8)
    guard nodes[place].isPresent else { return }
    switch action {
    case 0: toggleMute(place, audio: true)
    case 1: toggleMute(place, audio: false)
    case 2, 3: toggleCall(place)
    case 4: say(place, to: nil)
    case 5:
      let others = nodes[place].node?.members(of: channel.id) ?? []
      say(place, to: others.isEmpty ? nil : prng.one(of: others).id)
    case 6: say(place, to: nil)
    case 7: administer(place)
    case 8: wish(place)
    case 9: loseDecoder(place)
    case 10: changeLayers(place)
    default: toggleMute(place, audio: false)
    }
  }

  private mutating func toggleMute(_ place: Int, audio: Bool) {
    if audio {
      nodes[place].isAudioMuted.toggle()
      let isMuted = nodes[place].isAudioMuted
      note(nodes[place].label, isMuted ? "mutes sound" : "unmutes sound")
      input(place) { $0.setMuted(audio: isMuted, at: $1) }
    } else {
      nodes[place].isVideoMuted.toggle()
      let isMuted = nodes[place].isVideoMuted
      note(nodes[place].label, isMuted ? "mutes video" : "unmutes video")
      input(place) { $0.setMuted(video: isMuted, at: $1) }
    }
  }

  // MARK: Calls and text

  private mutating func toggleCall(_ place: Int) {
    let id = channel.id
    guard nodes[place].node?.isInCall(id) == true else {
      note(nodes[place].label, "wants into the call")
      let outputs = command(place) { (node, clock) throws(CommandRefusal) in
        try node.startCall(in: id, at: clock)
      }
      perform(outputs ?? [], of: place)
      return
    }
    note(nodes[place].label, "leaves the call")
    noteEndOfCall(place)
    input(place) { $0.leaveCall(in: id, at: $1) }
  }

  /// An initiator that is about to leave its call ends it for all.
  mutating func noteEndOfCall(_ place: Int) {
    guard let node = nodes[place].node, node.isInCall(channel.id),
      let call = node.call(in: channel.id)?.info, call.initiator == node.id,
      node.ownMember(in: channel.id)?.call == call.id
    else { return }
    calls.ended(call, at: place)
    trace.mark(.endsCall, at: place, now)
  }

  /// Says something; mostly short, sometimes as long as it may be.
  mutating func say(_ place: Int, to receiver: NodeID?) {
    let id = channel.id
    var text = "\(Marker.text) says \(messages.count)"
    if prng.chance(0.1) { text += String(repeating: ".", count: Limits.textBytes - 40) }
    let to = receiver.map { " to \(label($0))" } ?? ""
    note(nodes[place].label, "says \(messages.count)\(to)")
    let outputs = command(place) { (node, clock) throws(CommandRefusal) in
      try node.say(text, to: receiver, in: id, at: clock)
    }
    guard let outputs else { return }
    let own = nodes[place].identity.id
    for case .keep(let bytes, let entryID, in: _) in outputs {
      guard let entry = try? Entry(decoding: bytes.dropLast(Entry.signatureBytes)),
        entry.author == own, case .message(let message) = entry.body
      else { continue }
      messages.said(
        MessageChecker.Word(
          text: text, id: entryID, from: own, to: receiver, after: message.after),
        at: nodes[place].reader,
        isUnproven: !(nodes[place].node?.may(.sendText, own, in: id) ?? true), now)
      trace.mark(.said, at: place, now)
    }
    perform(outputs, of: place)
  }

  // MARK: Media

  private mutating func wish(_ place: Int) {
    let id = channel.id
    let wish = prng.one(of: [
      VideoWish.best, VideoWish(width: 400, height: 200), VideoWish(width: 100, height: 100),
    ])
    note(nodes[place].label, "asks for pictures up to \(wish.width)x\(wish.height)")
    input(place) { $0.watch(wish, of: nil, in: id, at: $1) }
  }

  /// A decoder is set up anew, as when a page is loaded again.
  private mutating func loseDecoder(_ place: Int) {
    let links = nodes[place].node?.statistics().map(\.link) ?? []
    guard !links.isEmpty else { return }
    let link = prng.one(of: links)
    note(nodes[place].label, "lost its decoder of \(label(link.peer))")
    input(place) { $0.requestKeyframe(from: link, at: $1) }
  }

  private mutating func changeLayers(_ place: Int) {
    nodes[place].source.setLayers(prng.below(4))
    let offered = nodes[place].source.layers
    note(nodes[place].label, "offers \(offered.count) layers")
    input(place) {
      $0.setSources(layers: offered, isPattern: false, hasAudio: true, at: $1)
    }
  }
}
