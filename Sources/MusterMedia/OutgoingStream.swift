import MusterBase
import MusterWire

/// One video stream to one receiver: the selected step, and an RTP sender per layer.
public struct OutgoingStream: Sendable {
  /// The stream's id.
  public let id: StreamID
  /// The step that is being sent; nil if no video is sent.
  public private(set) var current: LayerStep?
  /// The step to which the stream changes at the next keyframe of its layer, or the current step;
  /// nil if no video is to be sent.
  public private(set) var target: LayerStep?
  /// The reason for the current layer.
  public private(set) var why = LayerReason.started
  /// The number of frames sent.
  public private(set) var frames: UInt64 = 0
  /// The number of RTP payload bytes sent, excluding retransmissions.
  public private(set) var bytes: UInt64 = 0

  /// The least times to a change to more, from the last such change and from the last one to less,
  /// where the bandwidth is the reason: one probe of the path apart, at least.
  static let riseInterval = Duration.seconds(10)
  static let riseAfterFall = Duration.seconds(3)

  /// The layers that were offered, and the request, when `select` was last
  /// called.
  private var offered: [VideoLayer] = []
  private var requested = VideoRequest.best
  /// The times of the last change to more and of the last one to less for which the bandwidth was
  /// the reason.
  private var roseAt: Instant?
  private var fellAt: Instant?
  /// The layer as last reported in a `LayerChange`.
  private var reported: VideoLayer?
  /// The state of which the receiver was last notified.
  private var notified: SentLayer?
  /// The reason for `target` if it differs from `current`.
  private var targetWhy = LayerReason.started
  /// Whether the path has no room for all that is requested, and the reason for the layer when it
  /// has.
  private var isLimited = false
  private var unlimitedWhy = LayerReason.started
  /// The RTP senders, one per layer; sequence numbers continue when a layer is selected again.
  private var senders: [RTPSender]
  private var retransmissionBudget = RetransmissionBudget()
  private var admission = FrameAdmission()
  /// The layer that goes on with a keyframe only, since the path was full; it is requested when the
  /// path has room.
  private var owedKeyframe: Int?
  /// The time of the request for it; nil if there was none, or the keyframe that came was left out.
  private var owedKeyframeRequestedAt: Instant?
  /// The time of the last keyframe that was sent.
  private var keyframeSentAt: Instant?
  /// The capture time of the keyframe of the cached frames that were last sent.
  private var caughtUpFrom: Instant?
  /// The rate limits for the receiver's keyframe requests and for those of owed keyframes: a burst
  /// of six, then one per second, which suffices even at high loss.
  private var keyframeRequests = TokenBucket(capacity: 6, perSecond: 1)
  private var owedKeyframeRequests = TokenBucket(capacity: 6, perSecond: 1)

  init(_ id: StreamID, ssrcs: SSRCPlan, prng: inout PRNG) {
    self.id = id
    senders = []
    for layer in 0..<Limits.spatialLayers {
      senders.append(
        RTPSender(
          payloadType: PayloadType.video(id, layer: layer), ssrc: ssrcs.video(id, layer: layer),
          firstSequence: UInt16(truncatingIfNeeded: prng.next()),
          historyCapacity: Limits.retransmissionPackets))
    }
  }

  /// The result of selecting a step.
  public struct Selection: Equatable, Sendable {
    /// The layer of which a keyframe must be requested; nil if the layer stays the same or no video
    /// is to be sent.
    public var keyframe: Int?
    /// The change that takes effect at once: of the frame rate, or to no video; nil otherwise.
    public var change: LayerChange?
  }

  /// Whether the stream may change to a higher step.
  public func mayRise(at now: Instant) -> Bool {
    roseAt.map { now - $0 >= Self.riseInterval } ?? true
      && fellAt.map { now - $0 >= Self.riseAfterFall } ?? true
  }

  /// Lets the stream change to a higher step at once, since it takes another path.
  mutating func pathChanged() { (roseAt, fellAt) = (nil, nil) }

  /// Selects a step for the receiver's request, out of `layers`, smallest first; nil if there is no
  /// room for any, with `limit` as the reason: `bandwidth` or `uplinkShare`. `adaptation` is what
  /// this node gives up for lack of CPU. A non-nil `prevented` is the reason not to send the
  /// stream; no step is then selected.
  public mutating func select(
    _ step: LayerStep?, for requested: VideoRequest, among layers: [VideoLayer],
    _ adaptation: CPUAdaptation = .init(), limit: LayerReason = .bandwidth,
    prevented: LayerReason?, at now: Instant
  ) -> Selection {
    let isNewSource = layers != offered
    let isNewRequest = requested != self.requested
    (offered, self.requested) = (layers, requested)
    if isNewSource, current != nil { targetWhy = .source }
    let off =
      prevented
      ?? (layers.isEmpty
        ? .source : !requested.wantsVideo ? requested.why : step == nil ? limit : nil)
    guard off == nil, let step else {
      if off != limit {
        // To be sent again is no rise for which the bandwidth is the reason.
        (roseAt, fellAt) = (nil, nil)
      } else if target != nil {
        fellAt = now
      }
      isLimited = off == limit
      target = nil
      return stop(off ?? limit)
    }
    let wasLimited = isLimited
    let all = LayerChoice.step(for: requested, among: layers)
    let most = all.map { adaptation.limited($0, of: layers.count) }
    isLimited = step != most
    let reason =
      isLimited
      ? limit : most != all ? .cpu : reasonForAll(of: layers, isNewRequest: isNewRequest)
    guard step != target else {
      // The step stays, but it is no longer the bandwidth that limits it, or now it is.
      let isForRoom = why.isOfRoom || why == .cpu || isLimited || reason == .cpu
      if isNewRequest || isNewSource, step == current, isForRoom {
        why = reason
      }
      return Selection()
    }
    // Something after nothing is no rise: more may follow at once.
    if let target, isLimited || wasLimited, !isNewRequest, !isNewSource {
      if step < target { fellAt = now } else { roseAt = now }
    }
    let pending = target
    target = step
    guard step.layer != current?.layer else {
      send(step)
      return Selection(change: reportedChange(why: reason))
    }
    if !isNewSource || current == nil { targetWhy = reason }
    return Selection(keyframe: step.layer == pending?.layer ? nil : step.layer)
  }

  /// The reason for a step that is all that is requested, and the best one or not.
  private mutating func reasonForAll(of layers: [VideoLayer], isNewRequest: Bool) -> LayerReason {
    let isBest =
      LayerChoice.step(for: requested, among: layers) == LayerChoice.step(for: .best, among: layers)
    if !isBest || current != nil && isNewRequest {
      unlimitedWhy = requested.why == .cpu ? .cpu : .requested
    } else if current == nil, !why.isOfRoom, why != .cpu {
      unlimitedWhy = why.onResuming
    }
    return unlimitedWhy
  }

  private mutating func send(_ step: LayerStep) {
    current = step
    admission.temporalLayers = step.temporalLayers
  }

  private mutating func stop(_ reason: LayerReason) -> Selection {
    why = reason
    guard current != nil else { return Selection() }
    current = nil
    return Selection(change: reportedChange(why: reason))
  }

  /// The change of what is sent since the last one that was reported; nil if there is none.
  private mutating func reportedChange(why reason: LayerReason) -> LayerChange? {
    var now: VideoLayer?
    if let current, offered.indices.contains(current.layer) {
      now = offered[current.layer]
      now?.framesPerSecond = current.framesPerSecond(of: offered[current.layer].framesPerSecond)
    }
    guard now != reported else { return nil }
    why = reason
    defer { reported = now }
    return LayerChange(from: reported, to: now, why: reason)
  }

  /// Switches to `layer` if it is that of the target and its keyframe, which would wait for `wait`,
  /// can be sent; called just before the keyframe is. Nil if the reported layer does not change.
  public mutating func switchLayer(to layer: Int, wait: Duration) -> LayerChange? {
    guard let target, layer == target.layer else { return nil }
    guard wait <= FrameAdmission.longestWait[0] else {
      (owedKeyframe, owedKeyframeRequestedAt) = (layer, nil)
      return nil
    }
    send(target)
    let change = reportedChange(why: targetWhy)
    if change != nil { targetWhy = .requested }
    return change
  }

  /// The state of which the receiver is notified, again and again in case that it missed a change.
  public var sent: SentLayer { SentLayer(id, reported, why: why) }

  /// Returns the new state if the receiver is to be notified of it; nil if it has not changed.
  public mutating func notification() -> SentLayer? {
    guard sent != notified else { return nil }
    notified = sent
    return sent
  }

  /// Ends the stream; nil if no video was being sent.
  public mutating func end() -> LayerChange? {
    target = nil
    return stop(.ended).change
  }

  // MARK: Packets

  /// Whether a frame of the layer being sent, which would wait for `wait` to leave, is sent to this
  /// receiver. If it is not, neither are those that refer to it.
  public mutating func admits(
    _ frame: PacketizedFrame, wait: Duration, at now: Instant
  ) -> Bool {
    guard frame.layer == current?.layer else { return false }
    let isAdmitted = admission.admits(frame, wait: wait)
    if admission.isWaitingForKeyframe { owedKeyframe = owedKeyframe ?? frame.layer }
    if frame.isKeyframe {
      owedKeyframeRequestedAt = nil
      if isAdmitted { (owedKeyframe, keyframeSentAt) = (nil, now) }
    }
    return isAdmitted
  }

  /// Whether to send the frames since a layer's keyframe of this time: once only, as a receiver
  /// that still needs a keyframe cannot make use of them.
  public func mayCatchUp(fromKeyframeOf capturedAt: Instant) -> Bool {
    caughtUpFrom != capturedAt
  }

  /// Notes that the receiver got the frames since a keyframe, to catch up.
  public mutating func caughtUp(fromKeyframeOf capturedAt: Instant) { caughtUpFrom = capturedAt }

  /// Notes that a packet of a layer was not sent, although its frame was admitted. It is not
  /// retransmitted either: when the path has room, a keyframe does more.
  public mutating func expired(_ sequence: UInt16, layer: Int) {
    senders[layer].expired(sequence)
    guard layer == current?.layer else { return }
    admission.lost()
    owedKeyframe = owedKeyframe ?? layer
  }

  /// Whether the receiver gets nothing before a keyframe, since frames were left out, or waits for
  /// one to change its layer.
  var owesKeyframe: Bool { owedKeyframe != nil }

  /// Notes that the target layer begins as soon as its frames since the last keyframe, or a
  /// keyframe, can be sent.
  public mutating func oweKeyframe(ofLayer layer: Int) {
    (owedKeyframe, owedKeyframeRequestedAt) = (layer, nil)
  }

  /// The layer of which a keyframe is to be sent or requested now, because it is owed, and would
  /// only wait for `wait`; nil if there is none. If no keyframe comes, it is requested again after
  /// `FrameAdmission.keyframeInterval`.
  public mutating func dueKeyframe(wait: Duration, at now: Instant) -> Int? {
    guard let owedKeyframe else { return nil }
    let isChange = owedKeyframe != current?.layer
    guard wait <= (isChange ? FrameAdmission.longestWait[0] : FrameAdmission.keyframeWait) else {
      return nil
    }
    guard !isChange || owedKeyframe == target?.layer else {
      self.owedKeyframe = nil
      return nil
    }
    if current?.temporalLayers == 0, target == current, let last = keyframeSentAt,
      now - last < FrameAdmission.stillInterval
    {
      return nil
    }
    if let last = owedKeyframeRequestedAt, now - last < FrameAdmission.keyframeInterval {
      return nil
    }
    guard owedKeyframeRequests.take(at: now) else { return nil }
    owedKeyframeRequestedAt = now
    return owedKeyframe
  }

  /// Returns the header for the next packet of the frame's layer; keeps the packet for
  /// retransmission.
  public mutating func send(
    _ payload: ArraySlice<UInt8>, of frame: PacketizedFrame, isLast: Bool, at now: Instant
  ) -> RTPHeader {
    bytes &+= UInt64(payload.count)
    if isLast { frames &+= 1 }
    retransmissionBudget.sent(payload.count, at: now)
    return senders[frame.layer].send(
      payload, marker: isLast, timestamp: frame.timestamp, audioLevel: nil,
      isBase: frame.temporalLayer == 0, at: now)
  }

  /// Returns the packets of a layer to retransmit in response to a NACK.
  public mutating func retransmissions(
    of sequences: [UInt16], layer: Int, roundTrip: Duration, at now: Instant
  ) -> [(header: RTPHeader, payload: ArraySlice<UInt8>)] {
    guard senders.indices.contains(layer) else { return [] }
    return senders[layer].retransmissions(
      of: sequences, roundTrip: roundTrip, within: &retransmissionBudget, at: now)
  }

  /// Returns the packets of the current layer sent since `start`, to be resent over another path.
  /// They are not part of the budget: it was not a queue of that path that lost them.
  public mutating func repeats(
    since start: Instant, at now: Instant
  ) -> [(header: RTPHeader, payload: ArraySlice<UInt8>)] {
    guard let layer = current?.layer else { return [] }
    return senders[layer].repeats(since: start, at: now)
  }

  /// Whether to grant the receiver's keyframe request now, which must be for the layer being sent
  /// and within the rate limit. A request that was in flight when the last keyframe was sent is
  /// satisfied by that keyframe: half of `roundTrip` passes until the request arrives, the other
  /// half until the keyframe does. If it is lost, the receiver repeats its request. A keyframe that
  /// would have to wait is owed instead: the receiver may miss only what is still queued, and a
  /// further keyframe would queue behind it.
  public mutating func admitsKeyframeRequest(
    layer: Int, wait: Duration, roundTrip: Duration, at now: Instant
  ) -> Bool {
    guard layer == current?.layer else { return false }
    if let keyframeSentAt, now - keyframeSentAt < min(roundTrip, KeyframeLimiter.interval) {
      return false
    }
    guard keyframeRequests.take(at: now) else { return false }
    guard wait > FrameAdmission.keyframeWait else { return true }
    owedKeyframe = owedKeyframe ?? layer
    return false
  }

  mutating func receive(
    _ block: ReportBlock, layer: Int, at now: Instant
  ) -> (expected: Int, lost: Int)? {
    senders.indices.contains(layer) ? senders[layer].receive(block, at: now) : nil
  }

  /// The sender report on the current layer, or else the target layer; nil if no video is to be
  /// sent.
  func report(at now: Instant) -> SenderReport? {
    guard let layer = (current ?? target)?.layer else { return nil }
    let timestamp = RTPTime.timestamp(of: now, clockRate: RTPTime.videoClockRate)
    return senders[layer].report(at: now, timestamp: timestamp)
  }

  /// The number of retransmissions of all layers.
  var packetsRepeated: UInt64 { senders.reduce(0) { $0 &+ $1.packetsRepeated } }

  /// The loss of the current layer in percent, from the receiver's reports; nil if no video is
  /// sent.
  public var lossPercent: Double? { current.map { senders[$0.layer].lossPercent } }
}
