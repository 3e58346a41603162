import MusterBase
import MusterWire

extension VideoReceiver {
  /// Does all that is due for one layer and notes when something will be again.
  mutating func serve(_ index: Int, at now: Instant, into outputs: inout [Output]) {
    deliver(from: index, at: now, into: &outputs)
    let missing = layers[index].missing(roundTrip: roundTrip, at: now)
    if !missing.isEmpty {
      counted.packetsRequested &+= UInt64(missing.count)
      outputs.append(.nack(ssrc: layers[index].ssrc, missing))
    }
    // A packet given up may have been all that held back a keyframe behind it.
    deliver(from: index, at: now, into: &outputs)
    wakeAt[index] = soonest(
      layers[index].repairDeadline(roundTrip: roundTrip, after: now),
      serveKeyframe(index, at: now, into: &outputs))
  }

  mutating func askForKeyframe(_ index: Int, at now: Instant, into outputs: inout [Output]) {
    layers[index].keyframeRequested(at: now)
    counted.keyframesRequested &+= 1
    outputs.append(.requestKeyframe(ssrc: layers[index].ssrc))
  }

  /// Asks for a keyframe if it is time; when to look again.
  private mutating func serveKeyframe(
    _ index: Int, at now: Instant, into outputs: inout [Output]
  ) -> Instant? {
    guard let due = layers[index].keyframeRequestAt(roundTrip: roundTrip, at: now) else {
      return nil
    }
    guard due <= now else { return due }
    guard mayAsk(index, at: now) else { return now + Self.takeover }
    askForKeyframe(index, at: now, into: &outputs)
    return layers[index].keyframeRequestAt(roundTrip: roundTrip, at: now)
  }

  private func mayAsk(_ index: Int, at now: Instant) -> Bool {
    guard let current = activeLayer, current.ssrc != layers[index].ssrc else { return true }
    return now - current.lastNewAt >= Self.takeover
      && layers[index].lastNewAt > current.lastNewAt
  }

  private var activeLayer: LayerReceiver? { layers.first { $0.ssrc == active } }

  private mutating func deliver(
    from index: Int, at now: Instant, into outputs: inout [Output]
  ) {
    while true {
      let wasTroubled = layers[index].isTroubled
      guard let frame = layers[index].nextFrame(roundTrip: roundTrip, at: now) else { return }
      if layers[index].ssrc != active {
        guard mayTakeOver(frame, at: now) else {
          layers[index].retire()
          return
        }
        switchOver(to: index)
      }
      noteGap(before: frame, wasTroubled: wasTroubled, at: now)
      outputs.append(.frame(finish(frame, from: index, at: now)))
    }
  }

  /// A keyframe that took long to mend may belong to a layer the sender has left since.
  private func mayTakeOver(_ frame: AssembledFrame, at now: Instant) -> Bool {
    guard let current = activeLayer, let lastFrame,
      now - current.lastNewAt < LayerReceiver.silence
    else { return true }
    return RTPTime.distance(
      from: lastFrame.timestamp, to: frame.timestamp, clockRate: RTPTime.videoClockRate) > .zero
  }

  private mutating func switchOver(to index: Int) {
    active = layers[index].ssrc
    for other in layers.indices where other != index {
      layers[other].retire()
      wakeAt[other] = nil
    }
  }

  /// A gap is a freeze unless the source itself paused: then nothing was missing, and the pictures
  /// are as far apart by their capture times.
  private mutating func noteGap(before frame: AssembledFrame, wasTroubled: Bool, at now: Instant) {
    defer { lastFrame = (now, frame.timestamp) }
    counted.framesLost &+= UInt64(max(frame.skippedFrames, 0))
    guard let lastFrame, now - lastFrame.at > Self.freeze else { return }
    let captured = RTPTime.distance(
      from: lastFrame.timestamp, to: frame.timestamp, clockRate: RTPTime.videoClockRate)
    guard wasTroubled || captured < Self.freeze else { return }
    counted.freezes &+= 1
    counted.frozen += now - lastFrame.at
  }

  private mutating func finish(
    _ frame: AssembledFrame, from index: Int, at now: Instant
  ) -> ReceivedFrame {
    counted.frames &+= 1
    if frame.isKeyframe { counted.keyframes &+= 1 }
    if let size = frame.keyframeSize { counted.size = size }
    counted.layer = layers[index].layer
    // All layers share one time base, so any layer's report serves until this one's own arrives.
    let clock =
      layers[index].clock.isKnown
      ? layers[index].clock : layers.first { $0.clock.isKnown }?.clock
    return ReceivedFrame(
      layer: layers[index].layer, temporalLayer: frame.temporalLayer, data: frame.data,
      isKeyframe: frame.isKeyframe, timestamp: frame.timestamp,
      size: counted.size ?? VideoSize(width: 0, height: 0),
      capturedAt: clock?.captureTime(
        of: frame.timestamp, clockRate: RTPTime.videoClockRate), completedAt: now)
  }
}
