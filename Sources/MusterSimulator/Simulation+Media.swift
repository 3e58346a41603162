import MusterBase
import MusterChannel
import MusterCore
import MusterMedia
import MusterWire

/// Synthetic video and audio, from capture to playout.
extension Simulation {
  mutating func show(
    _ frame: ReceivedFrame, of stream: StreamID, _ link: LinkID, at index: Int
  ) {
    totals.frames += 1
    guard let sender = owners[link.peer] else {
      violated("frames", "\(nodes[index].label) shows a frame of an outsider")
      return
    }
    checkRole(stream.capability, of: link.peer, at: index, "shows a frame of")
    if frame.isShown { shownAt[shownIndex(stream, of: sender, at: index)] = now }
    let fault = frameChecker.decoded(
      frame.data, of: stream, layer: frame.layer, isShown: frame.isShown, from: sender, at: index)
    if let fault { violated("frames", fault) }
    if let fault = bounds.shown(after: frame.delay) { violated("bounds", fault) }
  }

  mutating func play(_ audio: ReceivedAudio, of link: LinkID, at index: Int) {
    totals.audioPackets += 1
    guard let sender = owners[link.peer] else {
      violated("delivery", "\(nodes[index].label) plays an outsider")
      return
    }
    checkRole(.sendAudio, of: link.peer, at: index, "plays audio of")
    if let fault = delivery.played(audio.payload, from: sender, at: index) {
      violated("delivery", fault)
    }
    // The playout delay of audio is a constant 60 ms, which video must match.
    let playedAt = nodes[index].local(now) + .milliseconds(60)
    nodes[index].process?.node.noteAudioPlayout(
      of: link, timestamp: audio.timestamp, playedAt: playedAt)
  }

  /// The index in `shownAt` of the time at which a stream was last shown.
  func shownIndex(_ stream: StreamID, of sender: Int, at receiver: Int) -> Int {
    (receiver * nodes.count + sender) * Limits.videoStreams + stream.index
  }

  mutating func mediaEnded(_ link: LinkID, _ stream: StreamID?, at index: Int) {
    // The end of a stream under a lost identity does not concern the host's current identity.
    guard let sender = present(link.peer) else { return }
    frameChecker.ended(stream, from: sender, at: index)
    for ended in stream.map({ [$0] }) ?? StreamID.all {
      shownAt[shownIndex(ended, of: sender, at: index)] = nil
    }
  }

  mutating func startMedia(_ index: Int, run: Int) {
    guard scenario.hasMedia else { return }
    schedule(.frame(index, run: run), in: prng.duration(.zero, .milliseconds(200)))
    schedule(
      .audio(index, run: run, packetsLeft: 0, level: 0), in: prng.duration(.zero, .seconds(2)))
  }

  mutating func takeFrame(_ index: Int, run: Int) {
    guard nodes[index].run == run, nodes[index].process != nil else { return }
    schedule(
      .frame(index, run: run), in: .milliseconds(1000 / SyntheticSource.framesPerSecond))
    let clock = nodes[index].local(now)
    for stream in StreamID.all {
      for frame in nodes[index].source.frames(of: stream, capturedAt: clock, &prng) {
        input(index) { $0.sendVideo(frame, of: stream, at: $1) }
      }
    }
  }

  /// Sends audio in talk spurts: an encoder with DTX sends almost nothing between them (RFC 7587
  /// section 3.1.3). After the last fault all nodes stay silent, because the speaking state is part
  /// of the document that must converge.
  mutating func takeAudio(_ index: Int, run: Int, packetsLeft: Int, level: UInt8) {
    guard nodes[index].run == run, nodes[index].process != nil else { return }
    guard packetsLeft > 0 else {
      guard !isHealed else { return }
      let next = 4 + prng.below(20)
      let level: UInt8 = prng.chance(0.7) ? 20 : 60
      schedule(
        .audio(index, run: run, packetsLeft: next, level: level),
        in: prng.duration(.milliseconds(500), .seconds(6)))
      return
    }
    schedule(
      .audio(index, run: run, packetsLeft: packetsLeft - 1, level: level), in: .milliseconds(20))
    let clock = nodes[index].local(now)
    let audio = nodes[index].source.audio(capturedAt: clock, level: level)
    input(index) { $0.sendAudio(audio, at: $1) }
  }
}

extension StreamID {
  /// The capability that a member needs to send the stream.
  var capability: Capability { self == .screen ? .share : .sendVideo }
}
