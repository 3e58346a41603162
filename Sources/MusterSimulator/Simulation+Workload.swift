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
    case .restart(let place, let forgetful): restart(place, forgetful: forgetful)
    case .finishLeaving(let place, let run, let patience):
      finishLeaving(place, run: run, patience: patience)
    case .rejoin(let place, let run): rejoin(place, run: run)
    case .picture(let place, let run): takePicture(place, run: run)
    case .sound(let place, let run, let packetsLeft, let level):
      takeSound(place, run: run, packetsLeft: packetsLeft, level: level)
    case .check: check()
    case .calm: calm()
    }
  }

  /// A process starts and joins.
  mutating func start(_ place: Int) {
    // Who is told of a call that is just being ended could carry it on.
    guard !isCallEnding else {
      schedule(.start(place), in: .milliseconds(500))
      return
    }
    nodes[place].run += 1
    let run = nodes[place].run
    let layers = prng.below(4)
    nodes[place].source = SyntheticSource(
      sender: UInt8(place), run: UInt8(truncatingIfNeeded: run), layers: layers)
    nodes[place].isVideoMuted = false
    nodes[place].isAudioMuted = false
    var configuration = Node.Configuration()
    configuration.name = nodes[place].name
    nodes[place].node = Node(
      identity: nodes[place].identity, entropy: .seeded(prng.next()), seed: prng.next(),
      configuration: configuration)
    frameChecker.restarted(place)
    note(nodes[place].label, "starts, run \(run)")
    let own = nodes[place].address
    let offered = nodes[place].source.layers
    input(place) { $0.setOwnAddresses([own], at: $1) }
    input(place) {
      $0.setSources(layers: offered, isPattern: false, hasAudio: true, at: $1)
    }
    setWallClock(place, error: 0)
    join(place)
    if usesPeers {
      let others = nodes.filter { $0.place != place }.map(\.address)
      input(place) { $0.setPeers(others, at: $1) }
    }
    schedule(.picture(place, run: run), in: prng.duration(.zero, .milliseconds(200)))
    schedule(
      .sound(place, run: run, packetsLeft: 0, level: 0), in: prng.duration(.zero, .seconds(2)))
  }

  mutating func join(_ place: Int) {
    nodes[place].isInChannel = true
    lastChangeAt = now
    let (key, name, call) = (key, channelName, nodes[place].wantsCall)
    input(place) { $0.join(key, named: name, call: call, at: $1) }
  }

  mutating func setWallClock(_ place: Int, error milliseconds: Int64) {
    let boot = UInt64(clamping: now.nanoseconds / 1_000_000)
    let wall = UInt64(clamping: 1_760_000_000_000 &+ Int64(clamping: boot) &+ milliseconds)
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
    let action = prng.below(6)
    guard nodes[place].node != nil, nodes[place].isInChannel else { return }
    switch action {
    case 0: toggleMute(place, audio: true)
    case 1: toggleMute(place, audio: false)
    case 2: toggleCall(place)
    case 3: wish(place)
    case 4: loseDecoder(place)
    default: changeLayers(place)
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

  private mutating func toggleCall(_ place: Int) {
    let channel = key.channelID
    guard nodes[place].node?.isInCall(channel) == true else {
      note(nodes[place].label, "wants into the call")
      input(place) { $0.startCall(in: channel, at: $1) }
      return
    }
    guard mayLeaveCall(place) else { return }
    note(nodes[place].label, "leaves the call")
    input(place) { $0.leaveCall(in: channel, at: $1) }
  }

  private mutating func wish(_ place: Int) {
    let channel = key.channelID
    let choices = [
      VideoWish.best, VideoWish(width: 400, height: 200), VideoWish(width: 100, height: 100),
    ]
    let wish = choices[prng.below(choices.count)]
    note(nodes[place].label, "asks for pictures up to \(wish.width)x\(wish.height)")
    input(place) { $0.watch(wish, of: nil, in: channel, at: $1) }
  }

  /// A decoder is set up anew, as when a page is loaded again.
  private mutating func loseDecoder(_ place: Int) {
    let links = nodes[place].node?.statistics().map(\.link) ?? []
    guard !links.isEmpty else { return }
    let link = links[prng.below(links.count)]
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

  // MARK: Ends of calls

  /// Whether somebody's word that the call is over is still on its way.
  var isCallEnding: Bool { nodes.contains(where: \.isEndingCall) }

  /// Whether a node may leave the call just now; true notes what follows from that.
  ///
  /// An initiator's leaving ends the call for all, and nobody but the initiator can tell that to
  /// who has not heard it. So it ends calls only while everyone hears it, and stays until they
  /// have.
  mutating func mayLeaveCall(_ place: Int) -> Bool {
    let channel = key.channelID
    guard let node = nodes[place].node, node.isInCall(channel) else { return true }
    let isInitiator = node.call(in: channel)?.info.initiator == node.id
    guard isInitiator else { return true }
    guard !isCut, blockedDirections == 0, !isCallEnding, isHeardByAll(place) else { return false }
    nodes[place].isEndingCall = true
    return true
  }

  private func isHeardByAll(_ place: Int) -> Bool {
    let present = nodes.filter(\.isInChannel)
    return present.allSatisfy { other in
      other.place == place || isLinked(place, other.place) && isLinked(other.place, place)
    }
  }

  private func isLinked(_ place: Int, _ other: Int) -> Bool {
    let peer = nodes[other].identity.id
    return nodes[place].node?.statistics().contains { $0.link.peer == peer } ?? false
  }

  /// Notes ends of calls that everyone has heard of.
  mutating func noticeEndedCalls() {
    let channel = key.channelID
    for place in nodes.indices where nodes[place].isEndingCall {
      if nodes[place].node?.isSettled(channel) ?? true { nodes[place].isEndingCall = false }
    }
  }
}
