import MusterBase
import MusterChannel
import MusterCore
import MusterCrypto
import MusterDiscovery
import MusterWire

/// The workload: the commands that users give to their nodes.
extension Simulation {
  mutating func handle(_ event: Event) {
    switch event {
    case .start(let index): start(index)
    case .act: act()
    case .fault(let fault): inject(fault)
    case .heal: healCut()
    case .unblock(let from, let to): unblock(from: from, to: to)
    case .restart(let index, let loss): restart(index, loss)
    case .finishLeaving(let index, let run, let patience):
      finishLeaving(index, run: run, patience: patience)
    case .rejoin(let index, let run): rejoin(index, run: run)
    case .remove: removeSomebody()
    case .frame(let index, let run): takeFrame(index, run: run)
    case .audio(let index, let run, let packetsLeft, let level):
      takeAudio(index, run: run, packetsLeft: packetsLeft, level: level)
    case .found(let index, let run): endIsolation(of: index, run: run)
    case .unmute(let index, let run): turnOn(index, run: run)
    case .check: check()
    case .healAll: healAll()
    }
  }

  /// Starts a process that joins the channel.
  mutating func start(_ index: Int) {
    guard nodes[index].process == nil else { return }
    nodes[index].run += 1
    let run = nodes[index].run
    let layers = scenario.hasMedia ? prng.below(4) : 0
    let screen = scenario.hasMedia && prng.chance(Self.sharing) ? 1 + prng.below(2) : 0
    nodes[index].source = SyntheticSource(
      sender: UInt8(index), run: UInt8(truncatingIfNeeded: run), layers: layers, screen: screen)
    nodes[index].isVideoMuted = false
    nodes[index].isAudioMuted = false
    nodes[index].events = EventChecker()
    var configuration = Node.Configuration()
    configuration.name = nodes[index].name
    configuration.answersCalls = nodes[index].answersCalls && options.bug != .missesCalls
    configuration.policy =
      nodes[index].isLawless ? .lawless : options.bug?.policy ?? .standard
    nodes[index].process = Process(
      Node(
        identity: nodes[index].identity, entropy: .seeded(prng.next()), seed: prng.next(),
        configuration: configuration))
    frameChecker.restarted(index)
    note(nodes[index].label, "starts, run \(run)")
    let own = nodes[index].address
    let offers = nodes[index].source.offers
    let hasAudio = scenario.hasMedia
    input(index) { $0.setOwnAddresses([own], at: $1) }
    input(index) {
      $0.setSources(offers, hasAudio: hasAudio, at: $1)
    }
    setWallClock(index, error: 0)
    let usesPeers = scenario.usesPeers
    input(index) { node, _ in
      node.setFinders(rendezvousServers: 0, peers: usesPeers, dht: false)
      return []
    }
    join(index)
    if scenario.usesPeers {
      let others = nodes.filter { $0.index != index }.map(\.address)
      input(index) { $0.setPeers(others.map { Contact($0) }, at: $1) }
    }
    startMedia(index, run: run)
  }

  mutating func join(_ index: Int) {
    nodes[index].isInChannel = true
    nodes[index].refusals = []
    settling.changed(at: now)
    if nodes[index].showsInvite { noteInvite(of: index) }
    delayDiscovery(of: index)
    let setup = nodes[index].setup(of: channel)
    let call = nodes[index].wantsCall
    entries.joined(answers: nodes[index].answersCalls, wantsCall: call, at: index)
    input(index) { $0.join(setup, call: call, at: $1) }
  }

  mutating func setWallClock(_ index: Int, error milliseconds: Int64) {
    let elapsed = Int64(clamping: now.nanoseconds / 1_000_000)
    let wall = UInt64(clamping: Int64(WallTime.base) * 1000 &+ elapsed &+ milliseconds)
    input(index) { node, clock in
      node.setWallClock(millisecondsSince1970: wall, at: clock)
      return []
    }
  }

  /// Performs one random user action at one node.
  private mutating func act() {
    guard !isHealed else { return }
    let pause = Duration.milliseconds(4000 / nodes.count)
    schedule(.act, in: prng.duration(.milliseconds(50), pause))
    let index = prng.below(nodes.count)
    let action = prng.below(scenario.hasMedia ? 12 : 8)
    guard nodes[index].isPresent else { return }
    switch action {
    case 0: toggleMute(index, audio: true)
    case 1:
      if prng.chance(0.5) { toggleMute(index, audio: false) } else { moderate(index) }
    case 2, 3: toggleCall(index)
    case 4: say(index, to: nil)
    case 5:
      let others = nodes[index].process?.node.members(of: channel.id) ?? []
      say(index, to: others.isEmpty ? nil : prng.one(of: others).id)
    case 6: say(index, to: nil)
    case 7: administer(index)
    case 8: requested(index)
    case 9: loseDecoder(index)
    case 10: changeLayers(index)
    default: toggleMute(index, audio: false)
    }
  }

  private mutating func toggleMute(_ index: Int, audio: Bool) {
    if audio {
      nodes[index].isAudioMuted.toggle()
      let isMuted = nodes[index].isAudioMuted
      note(nodes[index].label, isMuted ? "mutes audio" : "unmutes audio")
      input(index) { $0.setMuted(audio: isMuted, at: $1) }
    } else {
      nodes[index].isVideoMuted.toggle()
      let isMuted = nodes[index].isVideoMuted
      note(nodes[index].label, isMuted ? "mutes video" : "unmutes video")
      input(index) { $0.setMuted(video: isMuted, at: $1) }
    }
  }

  /// Lets the user of a host turn on soon what a change of its role has left off.
  mutating func turnOnSoon(_ index: Int) {
    schedule(.unmute(index, run: nodes[index].run), in: Self.unmuteDelay)
  }

  private static let unmuteDelay = Duration.milliseconds(500)

  private mutating func turnOn(_ index: Int, run: Int) {
    guard nodes[index].run == run, nodes[index].process != nil else { return }
    let (audio, video) = (nodes[index].isAudioMuted, nodes[index].isVideoMuted)
    input(index) { $0.setMuted(audio: audio, at: $1) }
    input(index) { $0.setMuted(video: video, at: $1) }
    input(index) { $0.setMuted(share: false, at: $1) }
  }

  // MARK: Calls and text

  private mutating func toggleCall(_ index: Int) {
    let id = channel.id
    guard nodes[index].process?.node.isInCall(id) == true else {
      note(nodes[index].label, "wants into the call")
      let outputs = command(index) { (node, clock) throws(CommandRefusal) in
        try node.startCall(in: id, at: clock)
      }
      if outputs != nil { entries.asked(at: index) }
      perform(outputs ?? [], of: index)
      return
    }
    let call = nodes[index].process?.node.call(in: id)?.info.id
    if nodes[index].process?.node.successor(in: id) != nil, prng.chance(0.5) {
      note(nodes[index].label, "hands the call over")
      let outputs = command(index) { (node, clock) throws(CommandRefusal) in
        try node.handOverCall(in: id, at: clock)
      }
      if outputs != nil { entries.declined(call, at: index) }
      perform(outputs ?? [], of: index)
      return
    }
    note(nodes[index].label, "leaves the call")
    noteEndOfCall(index)
    entries.declined(call, at: index)
    input(index) { $0.leaveCall(in: id, at: $1) }
    guard options.bug == .entersLeftCalls else { return }
    input(index) { node, clock in (try? node.joinCall(in: id, at: clock)) ?? [] }
  }

  /// Marks the end of a call in the trace if the node that is about to leave is the initiator.
  mutating func noteEndOfCall(_ index: Int) {
    guard let process = nodes[index].process, process.node.isInCall(channel.id),
      let call = process.node.call(in: channel.id)?.info, call.initiator == process.node.id,
      process.node.ownMember(in: channel.id)?.call == call.id
    else { return }
    trace.mark(.endsCall, at: index, now)
  }

  /// Sends a message, usually short, sometimes close to the maximum length.
  mutating func say(_ index: Int, to receiver: NodeID?) {
    let id = channel.id
    var text = "\(Marker.text) says \(messages.count)"
    if prng.chance(0.1) { text += String(repeating: ".", count: Limits.textBytes - 40) }
    let to = receiver.map { " to \(label($0))" } ?? ""
    note(nodes[index].label, "says \(messages.count)\(to)")
    let outputs = command(index) { (node, clock) throws(CommandRefusal) in
      try node.say(text, to: receiver, in: id, at: clock)
    }
    guard let outputs else { return }
    let own = nodes[index].identity.id
    for case .commit(let changes, _) in outputs {
      guard case .entry(let bytes, let entryID)? = changes.first,
        let entry = try? Entry(decoding: bytes.dropLast(Entry.signatureBytes)),
        entry.author == own, case .message(let message) = entry.body
      else { continue }
      nodes[index].drafts[entryID] = MessageChecker.Draft(
        text: text, id: entryID, from: own, to: receiver, after: message.after)
      trace.mark(.sent, at: index, now)
    }
    perform(outputs, of: index)
  }

  // MARK: Media

  private mutating func requested(_ index: Int) {
    let id = channel.id
    let requested = prng.one(of: [
      VideoRequest.best, VideoRequest(width: 400, height: 200),
      VideoRequest(width: 100, height: 100),
    ])
    let stream = prng.chance(0.5) ? nil : prng.one(of: [StreamID.camera, .screen])
    let size = "\(requested.width)x\(requested.height)"
    note(nodes[index].label, "requests \(stream?.description ?? "all streams") up to \(size)")
    input(index) { $0.watch(requested, stream: stream, of: nil, in: id, at: $1) }
  }

  /// Requests a keyframe, as a node does when a browser reloads the page and loses its decoder.
  private mutating func loseDecoder(_ index: Int) {
    let links = nodes[index].process?.node.statistics(at: now).map(\.link) ?? []
    guard !links.isEmpty else { return }
    let link = prng.one(of: links)
    let stream = prng.one(of: [StreamID.camera, .screen])
    note(nodes[index].label, "lost its decoder of the \(stream) of \(label(link.peer))")
    input(index) { $0.requestKeyframe(of: stream, from: link, at: $1) }
  }

  private mutating func changeLayers(_ index: Int) {
    if prng.chance(Self.sharing) {
      nodes[index].source.setLayers(prng.below(3), of: .screen)
    } else {
      nodes[index].source.setLayers(prng.below(4))
    }
    let offers = nodes[index].source.offers
    let counts = offers.map { "\($0.layers.count) of the \($0.name)" }
    note(nodes[index].label, "offers layers: \(counts.joined(separator: ", "))")
    input(index) { $0.setSources(offers, hasAudio: true, at: $1) }
  }

  /// The probability that a node sends a second stream.
  private static let sharing = 0.3
}
