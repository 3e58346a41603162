import MusterBase
import MusterMedia
import MusterWire

/// What this node keeps about one association in use, with its media while in a call.
struct Peer: Sendable {
  /// The key of the session link in use.
  var key: KeyID
  let bootID: UInt64
  let upSince: Instant
  /// The run that the peer's presence named when the link came up: it may lag behind.
  var announcedBootID: UInt64?
  /// When the requested resolution is next repeated while in a call.
  var nextRequestAt: Instant
  /// When the channel's key is offered again; nil once the peer is known to have it.
  var nextKeyAt: Instant?
  /// When the peer's standing in the channel is next checked.
  var nextCheckAt: Instant?
  /// Where the peer sees this node.
  var seesThisNodeAt: Address?
  /// What the peer wants to see of this node.
  var requested = RequestedResolution.best
  /// Changes of that wish: each may begin or end the encoding of a layer.
  var subscriptionBudget = TokenBucket(capacity: 8, perSecond: 2)
  var outgoing: OutgoingMedia?
  var incoming: IncomingMedia?

  static let checkInterval = Duration.seconds(1)
  init(key: KeyID, bootID: UInt64, upSince: Instant) {
    self.key = key
    self.bootID = bootID
    self.upSince = upSince
    nextRequestAt = upSince
    nextCheckAt = upSince + Self.checkInterval
  }

  var deadline: Instant? {
    var next = incoming.flatMap { soonest(nextRequestAt, $0.video.deadline) }
    next = soonest(next, soonest(nextKeyAt, nextCheckAt))
    if let outgoing { next = soonest(next, outgoing.nextReport) }
    if let incoming { next = soonest(next, incoming.nextReport) }
    return next
  }
}

/// Media on its way to one member of the call.
///
/// Sources are numbered anew whenever media begins: a receiver that missed the end of the last time
/// would take a new random sequence under an old number for very late packets.
struct OutgoingMedia: Sendable {
  /// The SSRC of the sound; the layers' follow it.
  let ssrcBase: UInt32
  var audio: RTPSender
  /// One sender per layer; sequences go on where they were when a layer comes back.
  var video: [RTPSender]
  /// The layer that is being sent.
  var layer: Int?
  /// The layer to change to at its next keyframe.
  var target: Int?
  /// What may be sent to this member: the role and the channel's own muting allow it.
  var allowsAudio = true
  var allowsVideo = true
  var nextReport: Instant
  /// Keyframes that the receiver asks for: six at once, then what one that loses much needs.
  var keyframeRequests = TokenBucket(capacity: 6, perSecond: 1)
  var statistics = MediaStatistics()

  init(prng: inout PRNG, at now: Instant) {
    func sequence() -> UInt16 { UInt16(truncatingIfNeeded: prng.next()) }
    ssrcBase = UInt32(truncatingIfNeeded: prng.next())
    audio = RTPSender(
      payloadType: PayloadType.opus, ssrc: ssrcBase, firstSequence: sequence(),
      historyCapacity: 0)
    video = []
    for layer in 0..<Limits.spatialLayers {
      video.append(
        RTPSender(
          payloadType: PayloadType.vp8(layer: layer), ssrc: ssrcBase &+ 1 &+ UInt32(layer),
          firstSequence: sequence(), historyCapacity: Limits.retransmissionPackets))
    }
    nextReport = now
  }

  /// The layer that an SSRC of this node's video stands for.
  func layer(of ssrc: UInt32) -> Int? {
    let distance = ssrc &- ssrcBase &- 1
    return distance < UInt32(Limits.spatialLayers) ? Int(distance) : nil
  }
}

/// Media coming from one member of the call.
struct IncomingMedia: Sendable {
  var video = VideoReceiver()
  var audio: AudioStream?
  var lipSync = LipSync()
  /// How long sound takes from capture to loudspeaker, by the sender's clock.
  var audioDelay: Duration?
  /// What this node wants to see of the member.
  var requested: RequestedResolution
  /// What the member's role allows it to send; the rest is dropped unseen.
  var allowsAudio = true
  var allowsVideo = true
  var showsVideo = false
  var layer: VideoLayer?
  var nextReport: Instant
  var audioPackets: UInt64 = 0
  var audioBytes: UInt64 = 0

  init(requested: RequestedResolution, at now: Instant) {
    self.requested = requested
    nextReport = now + .milliseconds(500)
  }

  struct AudioStream: Sendable {
    let ssrc: UInt32
    var statistics: RTPReceiverStatistics
    var clock = SenderClock()
  }
}
