import MusterBase
import MusterCongestion
import MusterMedia
import MusterWire

/// The media of one link: the peer's requests while the link is up, and audio and video in both
/// directions while both nodes are in the call.
struct MediaSession: HasDeadline, Sendable {
  /// The time at which the link came up; the time to the first frame is measured from here.
  let upSince: Instant
  /// The round trip that almost none exceeds, since repair waits for answers; nil before the first
  /// measurement.
  var roundTrip: Duration?
  /// What the peer requests of each of this node's streams, by stream index; nil before it has said
  /// so, and it then gets nothing.
  var requested = [VideoRequest?](repeating: nil, count: Limits.videoStreams)
  /// The rate limit for changes of `requested`, by stream index: each change may begin or end the
  /// encoding of a layer.
  var subscriptionBudgets = Array(
    repeating: TokenBucket(capacity: 8, perSecond: 2), count: Limits.videoStreams)
  /// The bandwidth that the path has for the video of this link, in kbit/s of IP packets; nil if
  /// unlimited.
  var pathBandwidth: Int?
  /// The share of this node's uplink that the video of this link gets, in kbit/s of IP packets; nil
  /// if the uplink is not known to be a limit.
  var uplinkShare: Int?
  /// Whether the path itself carries less than such a share.
  var isPathNarrow = false
  /// What the peer says that it sends, by stream index; the peer may begin media first.
  var sentLayers = [SentLayer?](repeating: nil, count: Limits.videoStreams)
  /// The rate limit for changes of `sentLayers`, by stream index: each may be an event.
  var sentLayerBudgets = Array(
    repeating: TokenBucket(capacity: 8, perSecond: 2), count: Limits.videoStreams)
  /// The media of the call; nil unless both nodes are in it.
  var call: CallMedia?

  init(upSince: Instant) { self.upSince = upSince }

  /// The bandwidth for which layers are selected, in kbit/s of IP packets; nil if unlimited.
  var bandwidth: Int? {
    guard let pathBandwidth, let uplinkShare else { return pathBandwidth ?? uplinkShare }
    return min(pathBandwidth, uplinkShare)
  }

  /// What limits the layers where there is no room for more.
  var limit: LayerReason {
    guard let uplinkShare, !isPathNarrow else { return .bandwidth }
    return uplinkShare <= pathBandwidth ?? .max ? .uplinkShare : .bandwidth
  }

  /// The peer as a receiver in the plan of the uplink; nil if it gets no video.
  func uplinkReceiver(_ streams: EncodedStreams) -> UplinkPlan.Receiver? {
    let requests = streams.ids.compactMap { id in request(of: id, streams).map { (id, $0) } }
    guard !requests.isEmpty else { return nil }
    let largest = requests.map { $1.layers[$1.most.layer].size.pixels }.max() ?? 0
    let rank = UplinkPlan.Rank(
      hasScreen: requests.contains { $0.0 == .screen }, pixels: largest)
    let least = requests.reduce(0) { sum, request in
      let (stream, (most, layers)) = request
      let temporalLayers = most.layer == 0 ? most.temporalLayers : TemporalLayers.count
      return sum
        + LayerStep(layer: 0, temporalLayers: temporalLayers).bandwidth(
          ofLayerAt: streams.bitrates(of: stream)[0].min,
          framesPerSecond: layers[0].framesPerSecond)
    }
    // The others get the rest of a share that the path does not carry.
    let most = min(demand(streams), isPathNarrow ? pathBandwidth ?? .max : .max)
    return UplinkPlan.Receiver(
      rank: rank, least: least * (100 + LayerAllocation.riseMargin) / 100, most: most)
  }

  /// The peer as a receiver of a stream of `streams`; nil if it is to get nothing of it.
  func receiver(
    of stream: StreamID, _ streams: EncodedStreams, at now: Instant
  ) -> LayerAllocation.Receiver? {
    guard let most = request(of: stream, streams)?.most else { return nil }
    let sent = call?.outgoing[stream]
    return LayerAllocation.Receiver(
      requested: most, bandwidth: bandwidth.map { $0 * share(of: stream, streams) / 100 },
      current: sent?.target, mayRise: sent?.mayRise(at: now) ?? true,
      isShare: limit == .uplinkShare)
  }

  /// The bandwidth in kbit/s of IP packets that lets the peer get all that it requests.
  func demand(_ streams: EncodedStreams) -> Int {
    streams.ids.reduce(0) { sum, stream in
      guard let (most, layers) = request(of: stream, streams) else { return sum }
      return sum
        + most.bandwidth(
          ofLayerAt: streams.bitrates(of: stream)[most.layer].max,
          framesPerSecond: layers[most.layer].framesPerSecond) * (100 + LayerAllocation.riseMargin)
        / 100
    }
  }

  /// The most of a stream that the peer requests, and all layers; nil if it gets nothing of the
  /// stream.
  private func request(
    of stream: StreamID, _ streams: EncodedStreams
  ) -> (most: LayerStep, layers: [VideoLayer])? {
    let layers = streams.layers(of: stream)
    guard let call, call.outgoingRights[stream] == nil, let request = requested[stream.index]
    else { return nil }
    return LayerChoice.step(for: request, among: layers).map {
      (streams.adaptation.limited($0, of: layers.count), layers)
    }
  }

  /// The share of the link's bandwidth in percent that a stream gets of those that the peer
  /// requests: that of the most it could use.
  private func share(of stream: StreamID, _ streams: EncodedStreams) -> Int {
    var all = 0
    var own = 0
    for id in streams.ids {
      guard let layer = request(of: id, streams)?.most.layer else { continue }
      let most = streams.bitrates(of: id)[layer].max
      all += most
      if id == stream { own = most }
    }
    return all == 0 ? 0 : own * 100 / all
  }

  var deadline: Instant? { call?.deadline }
}

/// The media that roles and muting allow in one direction of a link.
struct MediaRights: Equatable, Sendable {
  var audio = true
  /// The reason why a stream may not be sent, by stream index; nil if it may be sent.
  var prevented = [LayerReason?](repeating: nil, count: Limits.videoStreams)

  subscript(stream: StreamID) -> LayerReason? {
    get { prevented[stream.index] }
    set { prevented[stream.index] = newValue }
  }
}

/// The media between this node and one other participant of a call.
struct CallMedia: Sendable {
  // Sent media.
  var outgoing: OutgoingStreams
  var outgoingAudio: AudioSender
  var outgoingRights = MediaRights()
  /// The totals of Opus packets sent and of their payload bytes.
  var audioPacketsSent: UInt64 = 0
  var audioBytesSent: UInt64 = 0
  var nextSenderReport: Instant

  /// What limits the video to a peer that gives no congestion feedback; nil for others.
  var reportedLoss: ReportedLoss?

  // Received media.
  var incoming = IncomingStreams()
  var incomingAudio: AudioReceiver?
  var incomingRights = MediaRights()
  /// What the peer's presence says.
  private(set) var presence = MediaPresence()
  /// The time at which the peer last stopped to speak, or to be the dominant speaker; nil before.
  var spokeAt: Instant?
  /// What this node requests of each of the peer's streams, by stream index; empty before it has
  /// requested anything.
  var wanted: [VideoRequest] = []
  /// The time at which the subscriptions and the sent layers are next repeated.
  var nextRepetition: Instant
  /// The time at which the subscriptions are repeated once more; nil afterwards.
  var earlyRepetition: Instant?
  /// The totals of Opus packets received and of their payload bytes.
  var audioPacketsReceived: UInt64 = 0
  var audioBytesReceived: UInt64 = 0
  var nextReceiverReport: Instant

  /// The delay of the first reception report, shorter than the regular interval.
  private static let firstReceiverReport = Duration.milliseconds(500)
  /// The delay of a repetition of changed subscriptions beside the regular ones, since no video
  /// comes without them: soon enough that a lost one hardly delays the first frame, and after a
  /// burst of losses.
  private static let earlyRepetition = Duration.milliseconds(200)

  /// What the presence of a participant says that matters for its media.
  struct MediaPresence: Sendable {
    /// The video streams that the participant offers.
    var offers: [StreamOffer] = []
    /// Whether the participant says that it speaks.
    var isSpeaking = false
    /// The number of participants that have been in the call for longer.
    var seniority = 0
  }

  init(seed: UInt64, at now: Instant) {
    var prng = PRNG(seed: seed)
    outgoing = OutgoingStreams(seed: prng.next())
    outgoingAudio = AudioSender(
      ssrc: outgoing.ssrcs.base, firstSequence: UInt16(truncatingIfNeeded: prng.next()))
    nextSenderReport = now
    nextRepetition = now
    nextReceiverReport = now + Self.firstReceiverReport
  }

  mutating func set(_ presence: MediaPresence, at now: Instant) {
    if self.presence.isSpeaking && !presence.isSpeaking { spokeAt = now }
    self.presence = presence
  }

  /// Makes these the requests for the peer's streams, by stream index; returns the subscriptions
  /// that have changed.
  mutating func request(_ wanted: [VideoRequest], at now: Instant) -> [Control] {
    let former = self.wanted
    guard wanted != former else { return [] }
    self.wanted = wanted
    earlyRepetition = now + Self.earlyRepetition
    return StreamID.all.filter { former.isEmpty || wanted[$0.index] != former[$0.index] }
      .map(subscription)
  }

  /// This node's subscriptions, as messages for the peer.
  var subscriptions: [Control] { wanted.isEmpty ? [] : StreamID.all.map(subscription) }

  private func subscription(_ stream: StreamID) -> Control {
    .subscribe(Subscription(stream, wanted[stream.index]))
  }

  /// What this node sends, as messages for the peer.
  var sentLayers: [Control] {
    outgoing.ids.compactMap { outgoing[$0].map { .sentLayer($0.sent) } }
  }

  func offer(of stream: StreamID) -> StreamOffer? { presence.offers.first { $0.id == stream } }

  /// Whether the peer sends a stream to those who request it.
  func sends(_ stream: StreamID) -> Bool {
    guard incomingRights[stream] == nil, let offer = offer(of: stream) else { return false }
    return !offer.isMuted && !offer.layers.isEmpty
  }

  var deadline: Instant? {
    soonest(
      soonest(incoming.deadline, incomingAudio?.deadline),
      soonest(
        earlyRepetition, min(nextRepetition, min(nextSenderReport, nextReceiverReport))))
  }

  // MARK: Packets

  /// Returns the next packet of audio to the peer; nil if this node's role or mute state does not
  /// allow audio, or if the frame goes out in a long packet.
  mutating func sendAudio(
    _ audio: EncodedAudio, timestamp: UInt32, at now: Instant
  ) -> OutgoingPayload? {
    guard outgoingRights.audio,
      let (header, payload) = outgoingAudio.send(audio, timestamp: timestamp, at: now)
    else { return nil }
    audioPacketsSent &+= 1
    audioBytesSent &+= UInt64(payload.count)
    return OutgoingPayload(.rtp(header), payload)
  }

  /// Returns the Opus packets to retransmit in response to a NACK; none while audio is not allowed.
  mutating func retransmitAudio(
    _ sequences: [UInt16], roundTrip: Duration, at now: Instant
  ) -> [OutgoingPayload] {
    guard outgoingRights.audio else { return [] }
    return outgoingAudio.retransmissions(of: sequences, roundTrip: roundTrip, at: now)
      .map { OutgoingPayload(.rtp($0.header), $0.payload) }
  }

  /// Handles a packet of audio from the peer: plays its Opus packet, after copies of those that
  /// were missing. None if the peer's role allows no audio.
  mutating func receiveAudio(
    _ packet: RTPPacket, roundTrip: Duration, at now: Instant, play: (ReceivedAudio) -> Void
  ) {
    guard incomingRights.audio else { return }
    let ssrc = packet.header.ssrc
    if incomingAudio?.ssrc != ssrc { incomingAudio = AudioReceiver(ssrc: ssrc) }
    audioPacketsReceived &+= 1
    audioBytesReceived &+= UInt64(packet.payload.count)
    for arrival in incomingAudio?.receive(packet, at: now) ?? [] {
      let capturedAt = incomingAudio?.clock.captureTime(
        of: arrival.timestamp, clockRate: RTPTime.audioClockRate)
      play(
        ReceivedAudio(
          sequence: arrival.sequence, timestamp: arrival.timestamp, level: arrival.level,
          payload: Array(arrival.payload), capturedAt: capturedAt,
          repairTime: AudioReceiver.repairTime(roundTrip: roundTrip),
          leastDelay: incoming.neededAudioDelay(at: now)))
    }
  }

  /// Returns the NACK for the audio that is to be requested now; nil if there is none.
  mutating func requestMissingAudio(roundTrip: Duration, at now: Instant) -> RTCPPacket? {
    guard let ssrc = incomingAudio?.ssrc, let due = incomingAudio?.deadline, due <= now,
      let missing = incomingAudio?.missing(roundTrip: roundTrip, at: now), !missing.isEmpty
    else { return nil }
    return .nack(sender: outgoing.ssrcs.base, media: ssrc, sequences: missing)
  }

  /// Handles a VP8 packet from the peer; no outputs if the peer's role does not allow the stream.
  mutating func receiveVideo(
    _ packet: RTPPacket, of stream: StreamID, at now: Instant
  ) -> [VideoReceiver.Output] {
    incomingRights[stream] == nil ? incoming.receive(packet, of: stream, at: now) : []
  }
}
