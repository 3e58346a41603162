import MusterBase

/// Determines the dominant speaker of a call from the audio levels of everyone's packets.
///
/// The method is that of Volfin and Cohen ("Dominant speaker identification for multipoint
/// videoconferencing", Computer Speech & Language 27, 2013). Each participant's speech activity is
/// scored over a frame, a tenth of a second and most of a second. Another participant becomes
/// dominant when it is more active than the dominant one in all three, so that neither a cough nor
/// a word of agreement takes over, and in silence nobody does. Loudness counts above each
/// participant's own noise, so that a louder microphone is no advantage.
public struct DominantSpeaker<ID: Comparable & Sendable>: Sendable {
  /// The dominant speaker; nil until somebody has spoken, and when the dominant one has gone.
  public private(set) var current: ID?

  private var participants = PeerTable<ID, SpeechActivity>()
  private var decidedAt: Instant?

  /// The interval of the decisions: that of a medium span.
  private static var interval: Duration { .milliseconds(100) }
  /// By how much another must be more active than the dominant speaker: the logarithms of the
  /// ratios of their immediate, medium and long scores. The thresholds, like the rates of the
  /// scores below, are Jitsi's (`DominantSpeakerIdentification.java`).
  private static var margin: SpeechActivity.Scores { (3, 2, 0) }

  /// Creates a call in which nobody has spoken.
  public init() {}

  /// Adds the level of a participant's packet in -dBov; `timestamp` is that of its RTP header.
  /// Returns whether the dominant speaker has changed.
  public mutating func add(
    level: UInt8, timestamp: UInt32, of participant: ID, at now: Instant
  ) -> Bool {
    let index = participants.index(of: participant)
    if let index {
      participants.update(at: index) { $0.add(level: level, timestamp: timestamp, at: now) }
    } else {
      var activity = SpeechActivity()
      activity.add(level: level, timestamp: timestamp, at: now)
      participants[participant] = activity
    }
    guard decidedAt.map({ now - $0 >= Self.interval }) ?? true else { return false }
    decidedAt = now
    return decide()
  }

  /// Forgets a participant that has gone. Returns whether it was the dominant speaker.
  public mutating func remove(_ participant: ID) -> Bool {
    participants[participant] = nil
    guard current == participant else { return false }
    current = nil
    return true
  }

  private mutating func decide() -> Bool {
    for index in 0..<participants.count { participants.update(at: index) { $0.settle() } }
    guard let next = current.flatMap({ participants[$0] }).map(successor) ?? first else {
      return false
    }
    current = next
    return true
  }

  /// The participant that speaks; nil while nobody does. It is used where nobody is dominant.
  private var first: ID? {
    participants.filter { $0.value.isSpeech }.max { $0.value.long < $1.value.long }?.key
  }

  /// The most active participant that is more active than the dominant speaker by the margin.
  private func successor(of dominant: SpeechActivity) -> ID? {
    let (incumbent, margin) = (dominant.scores, Self.margin)
    var best: (id: ID, lead: Double)?
    for (id, activity) in participants where id != current {
      let scores = activity.scores
      let lead = scores.medium - incumbent.medium
      guard activity.isLasting, scores.immediate - incumbent.immediate > margin.immediate,
        lead > margin.medium, scores.long - incumbent.long > margin.long, lead > best?.lead ?? 0
      else { continue }
      best = (id, lead)
    }
    return best?.id
  }
}

/// The recent speech activity of one participant.
private struct SpeechActivity: Sendable {
  /// The logarithms of the scores, of which differences are compared.
  typealias Scores = (immediate: Double, medium: Double, long: Double)

  /// The frames of a medium span, 100 ms, and the medium spans of the long one, 0.8 s. Of the spans
  /// and thresholds tried on conversations of recorded speech, with noise, unequal gains and words
  /// of agreement, these found most speakers within a second (0.3 s in the median) without needless
  /// changes.
  static let mediumFrames = 5
  static let longSpans = 8
  /// The activity of a frame is its loudness above the noise in steps of 2 dB, at most 13.
  static let mostActivity = 13
  static let step = 2
  /// A frame is active from 3 steps, and a medium span from 3 active frames.
  static let activeFrame = 3
  static let activeSpan = 3
  /// The active spans with which somebody becomes the first dominant speaker.
  static let firstSpans = 2
  /// The active frames of the last 1.2 s with which somebody follows another, who may merely pause.
  /// A cough of 0.3 s has 16; with more frames, or a shorter time, speakers are found too late.
  static let followingFrames = 17
  static let rememberedFrames = 60
  /// The margin in dB above the quietest frame of 15 s up to which all is noise, and the level in
  /// -dBov from which on all is.
  static let noiseMargin: UInt8 = 6
  static let quietest: UInt8 = 55
  /// The frames of silence to add where there were no packets between two decisions.
  static let pause = 5
  /// The most frames that one packet stands for: those of a long one, or the lost ones before it.
  static let longestStep: Int32 = 5
  /// The samples of a frame, and those of 1 s, by which a timestamp steps back after a restart.
  static let frame = Int32(AudioTimestamps.samplesPerFrame)
  static let restart: Int32 = 48_000

  /// The activities of the last frames, newest first.
  private var frames = [Int](repeating: 0, count: rememberedFrames)
  private var noise = SlidingMinimum()
  private var newest: UInt32?
  private var hasNews = false

  mutating func add(level: UInt8, timestamp: UInt32, at now: Instant) {
    let distance = newest.map { Int32(bitPattern: timestamp &- $0) } ?? Self.frame
    // A retransmission: the packet after it stood for its frames.
    guard distance > 0 || distance < -Self.restart else { return }
    let loudness = 127 - min(level, 127)
    let floor = max(noise.add(loudness, at: now) + Self.noiseMargin, 127 - Self.quietest)
    let activity = min((Int(loudness) - Int(floor)) / Self.step, Self.mostActivity)
    let step = distance / Self.frame
    insert(max(activity, 0), count: (1...Self.longestStep).contains(step) ? Int(step) : 1)
    newest = timestamp
    hasNews = true
  }

  /// Adds silence if nothing has arrived since the last call.
  mutating func settle() {
    if !hasNews { insert(0, count: Self.pause) }
    hasNews = false
  }

  private mutating func insert(_ activity: Int, count: Int) {
    frames.removeLast(count)
    frames.insert(contentsOf: repeatElement(activity, count: count), at: 0)
  }

  /// Whether the participant speaks now and has spoken for some time.
  var isSpeech: Bool { medium(0) >= Self.activeSpan && long >= Self.firstSpans }

  /// Whether the participant has spoken for longer than a cough lasts.
  var isLasting: Bool {
    frames.count { $0 >= Self.activeFrame } >= Self.followingFrames
  }

  /// The number of active frames in a medium span; 0 is the newest.
  private func medium(_ span: Int) -> Int {
    let start = span * Self.mediumFrames
    return frames[start..<start + Self.mediumFrames].count { $0 >= Self.activeFrame }
  }

  /// The number of active medium spans.
  var long: Int { (0..<Self.longSpans).count { medium($0) >= Self.activeSpan } }

  var scores: Scores {
    (Self.immediate[frames[0]], Self.medium[medium(0)], Self.long[long])
  }

  private static let immediate = scores(of: mostActivity, lambda: 0.78)
  private static let medium = scores(of: mediumFrames, lambda: 24)
  private static let long = scores(of: longSpans, lambda: 47)

  /// The logarithm of the score for each number of active ones out of `count`. The score is the
  /// log-likelihood ratio of speech, for which the number is binomial with probability 1/2, and of
  /// silence, for which it is exponential with rate lambda. Scores are at least 1e-10, so that they
  /// have logarithms.
  private static func scores(of count: Int, lambda: Double) -> [Double] {
    var binomial = 1.0
    return (0...count).map { active in
      if active > 0 { binomial *= Double(count - active + 1) / Double(active) }
      let score =
        Math.log(binomial) - Double(count) * Math.log(2) - Math.log(lambda)
        + lambda * Double(active)
      return Math.log(max(score, 1e-10))
    }
  }
}

/// The minimum of the values of the last 15 s, to a second.
private struct SlidingMinimum: Sendable {
  private static let seconds = 15

  private var minima: [(second: Int64, value: UInt8)] = []

  /// Adds a value; returns the minimum.
  mutating func add(_ value: UInt8, at now: Instant) -> UInt8 {
    let second = now.nanoseconds / 1_000_000_000
    minima.removeAll { second - $0.second >= Self.seconds }
    if let last = minima.indices.last, minima[last].second >= second {
      minima[last].value = min(minima[last].value, value)
    } else {
      minima.append((second, value))
    }
    return minima.reduce(value) { min($0, $1.value) }
  }
}
