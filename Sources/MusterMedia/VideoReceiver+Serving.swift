import MusterBase
import MusterWire

extension VideoReceiver {
  /// Performs all actions that are due for one layer, and computes its next deadline.
  mutating func serve(_ index: Int, at now: Instant, into outputs: inout [Output]) {
    layers[index].cover = repairDelay.cover(at: now) ?? .zero
    deliver(from: index, at: now, into: &outputs)
    let missing = layers[index].missing(roundTrip: roundTrip, at: now)
    if !missing.isEmpty {
      counted.packetsRequested &+= UInt64(missing.count)
      outputs.append(.nack(ssrc: layers[index].ssrc, missing))
    }
    // A keyframe after an abandoned packet may now be deliverable.
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

  /// Requests a keyframe if one is due; returns the time of the next check.
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
      let (wasTroubled, begunAt) = (layers[index].isTroubled, layers[index].waitingSince)
      guard let frame = layers[index].nextFrame(roundTrip: roundTrip, at: now) else { return }
      if layers[index].ssrc != active {
        guard mayTakeOver(frame, begunAt: begunAt, at: now) else {
          layers[index].retire()
          return
        }
        switchOver(to: index)
      }
      if frame.isAfterLoss { repairDelay.lost(at: now) }
      let isShown = isNew(frame, from: layers[index])
      let finished = finish(frame, from: index, isShown: isShown, at: now)
      if isShown {
        noteGap(before: frame, wasTroubled: wasTroubled, shownAt: now + finished.delay)
        newest = (layers[index].ssrc, frame.timestamp)
        layers[index].shownTimestamp = frame.timestamp
      }
      outputs.append(.frame(finished))
    }
  }

  /// Whether a keyframe may make its layer the active one; `begunAt` is the arrival of the first
  /// packet that waited for it. A keyframe older than the last frame may not if packets of the
  /// active layer have arrived since: it was completed late, and the sender may have left its
  /// layer. If none have, the sender begins the layer with cached frames. A keyframe captured at
  /// the same time may: a sender that encodes the larger layer first has sent that before it
  /// changes to the smaller one.
  private func mayTakeOver(_ frame: AssembledFrame, begunAt: Instant?, at now: Instant) -> Bool {
    guard let current = activeLayer, let age = age(of: frame),
      now - current.lastNewAt < LayerReceiver.silence
    else { return true }
    return age <= .zero || begunAt.map { $0 >= current.lastNewAt } ?? false
  }

  /// The time by which a frame was captured before the newest one; nil without one.
  private func age(of frame: AssembledFrame) -> Duration? {
    newest.map {
      RTPTime.distance(
        from: frame.timestamp, to: $0.timestamp, clockRate: RTPTime.videoClockRate)
    }
  }

  /// Whether a frame is not sent again: it is no older than the newest, or of a sender whose
  /// timestamps began anew. Of two layers' frames of the same time, both are new once.
  private func isNew(_ frame: AssembledFrame, from layer: LayerReceiver) -> Bool {
    guard let newest, let age = age(of: frame) else { return true }
    let isOther = newest.ssrc != layer.ssrc && layer.shownTimestamp != frame.timestamp
    return age < .zero || (age == .zero && isOther) || age > Self.oldestRepeat
  }

  private mutating func switchOver(to index: Int) {
    active = layers[index].ssrc
    for other in layers.indices where other != index {
      layers[other].retire()
      wakeAt[other] = nil
    }
  }

  /// Notes that a frame is shown. The gap before it is no freeze if the source paused, in which
  /// case no frames are missing or left out, and the capture times are equally far apart.
  private mutating func noteGap(
    before frame: AssembledFrame, wasTroubled: Bool, shownAt: Instant
  ) {
    if frame.isAfterLoss { counted.framesLost &+= UInt64(frame.skippedFrames) }
    let sinceNewest = age(of: frame).map { .zero - $0 } ?? .zero
    let isPause = !wasTroubled && frame.skippedFrames == 0 && freezes.isFreeze(sinceNewest)
    if expectsStills || isPause { freezes.pause() }
    freezes.shown(at: shownAt)
  }

  private mutating func finish(
    _ frame: AssembledFrame, from index: Int, isShown: Bool, at now: Instant
  ) -> ReceivedFrame {
    if isShown { counted.frames &+= 1 }
    if frame.isKeyframe { counted.keyframes &+= 1 }
    if let size = frame.keyframeSize { counted.size = size }
    counted.layer = layers[index].layer
    // All layers share one RTP time base, so another layer's report is used before the first report
    // on this layer.
    let clock =
      layers[index].clock.isKnown
      ? layers[index].clock : layers.first { $0.clock.isKnown }?.clock
    let capturedAt = clock?.captureTime(of: frame.timestamp, clockRate: RTPTime.videoClockRate)
    var delay = Duration.zero
    var repaired: Duration?
    if isShown, let capturedAt {
      let latency = now - capturedAt
      repairDelay.update(transit: latency, roundTrip: roundTrip, at: now)
      repaired = repairDelay.latency(at: now)
      let target = [audioDelay, repaired].compactMap { $0 }.max()
      delay = lipSync.delay(target: target, video: latency, at: now)
    }
    return ReceivedFrame(
      layer: layers[index].layer, temporalLayer: frame.temporalLayer, data: frame.data,
      isKeyframe: frame.isKeyframe, timestamp: frame.timestamp,
      size: counted.size ?? VideoSize(width: 0, height: 0),
      capturedAt: capturedAt, completedAt: now, delay: delay,
      waitsForRepair: repaired != nil, isShown: isShown)
  }
}
