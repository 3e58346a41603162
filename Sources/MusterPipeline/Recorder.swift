import Glibc
import MusterBase
import MusterDevices
import MusterMedia

/// Writes what is received: one `.ivf` and one `.wav` per remote participant.
///
/// Both files begin at the same moment of the sender's clock, so that picture and sound of one
/// member line up: a picture's time, and a sample's place, are counted from there.
package final class Recorder: Sendable {
  private enum Input: Sendable {
    case frame(ReceivedFrame, LinkID)
    case audio(DecodedAudio, LinkID)
    case ended(LinkID)
  }

  /// Two seconds of 17 members at 30 frames and 50 packets a second, should the disk stall.
  private static let frameCapacity = 1024
  private static let audioCapacity = 2048

  private let directory: String
  private let inputs = FrameQueue<Input, LinkID>(
    encoded: frameCapacity, independent: audioCapacity
  ) { input in
    switch input {
    case .frame(let frame, let link):
      .encoded(link, temporalLayer: frame.temporalLayer, isKeyframe: frame.isKeyframe)
    case .audio(_, let link): .independent(link)
    case .ended(let link): .control(link)
    }
  }
  private let names = Monitor(PeerTable<LinkID, String>())

  /// Makes the directory where there is none; one that cannot be written is an error now, not
  /// later.
  package init(directory: String) throws(MusterError) {
    self.directory = directory
    if mkdir(directory, 0o755) != 0, errno != EEXIST {
      throw MusterError(
        "cannot make the directory \(directory) (\(SystemError.last))",
        hint: "check the path and its permissions")
    }
    guard access(directory, W_OK | X_OK) == 0 else {
      throw MusterError(
        "cannot write to \(directory) (\(SystemError.last))", hint: "choose another with --record")
    }
  }

  /// What the files of a member are called from its first picture or sound on.
  package func setName(_ name: String, of link: LinkID) { names.withLock { $0[link] = name } }

  /// Queues a frame; true when the disk is so slow that the recording needs a keyframe to go on.
  package func add(_ frame: ReceivedFrame, from link: LinkID) -> Bool {
    inputs.add(.frame(frame, link)) == .needsKeyframe(link)
  }

  package func add(_ audio: DecodedAudio, from link: LinkID) { inputs.add(.audio(audio, link)) }

  package func end(_ link: LinkID) { inputs.add(.ended(link)) }

  package func start(_ failed: @escaping @Sendable (MusterError) -> Void) -> WorkerThread {
    WorkerThread("muster-record") { self.run(failed) }
  }

  /// What is queued is still written.
  package func stop() { inputs.close() }

  /// Frames, sound and ends of media that wait for the disk.
  package var queueLevel: QueueLevel { inputs.level }

  private func run(_ failed: (MusterError) -> Void) {
    var tracks = PeerTable<LinkID, Track>()
    while let batch = inputs.takeAll() {
      for input in batch {
        do {
          try take(input, &tracks)
        } catch let error as DeviceError {
          failed(MusterError("recording stopped: \(error.what)", hint: error.hint))
          return inputs.close()
        } catch {
          failed(MusterError("recording stopped (\(error))", hint: "check the disk"))
          return inputs.close()
        }
      }
    }
    for index in 0..<tracks.count { tracks[at: index].close() }
  }

  private func take(_ input: Input, _ tracks: inout PeerTable<LinkID, Track>) throws {
    switch input {
    case .frame(let frame, let link):
      try tracks[at: track(of: link, &tracks)].add(frame, id: link.peer)
    case .audio(let audio, let link):
      try tracks[at: track(of: link, &tracks)].add(audio, id: link.peer)
    case .ended(let link):
      if let index = tracks.index(of: link) { tracks[at: index].close() }
      tracks[link] = nil
    }
  }
}

extension Recorder {
  /// Where a member's track is in the table; made when it is the first.
  private func track(of link: LinkID, _ tracks: inout PeerTable<LinkID, Track>) -> Int {
    if let index = tracks.index(of: link) { return index }
    let name = names.withLock { $0[link] } ?? "member"
    tracks[link] = Track(directory: directory, name: name)
    return tracks.index(of: link) ?? 0  // it was put there just now
  }
}

/// The recording of one member.
private struct Track {
  private let directory: String
  private let name: String
  private var path: String?
  private var video: IVFWriter?
  private var audio: WAVWriter?
  /// Where both files begin, by the sender's clock.
  private var origin: Instant?
  /// Pictures and sound that came before their capture time was known.
  private var waitingFrames: [ReceivedFrame] = []
  private var waitingAudio: [DecodedAudio] = []
  private var nextTimestamp: UInt32?
  private var samplesWritten = 0
  /// When `origin` was chosen, by this node's own clock.
  private var beganAt: Instant?

  /// Held until the first sender report: two seconds.
  private static let waitingLimit = 100
  /// A file is never more than this ahead of the time that has really passed: a member whose
  /// timestamps jump must not fill the disk with silence.
  private static let lead = 5 * 48_000
  /// Silence is written in pieces of a second.
  private static let silence = [Int16](repeating: 0, count: 48_000)

  package init(directory: String, name: String) {
    self.directory = directory
    self.name = name
  }

  package mutating func add(_ frame: ReceivedFrame, id: NodeID) throws {
    guard let capturedAt = frame.capturedAt else {
      if waitingFrames.count < Self.waitingLimit { waitingFrames.append(frame) }
      return
    }
    for earlier in takeWaitingFrames() {
      let ticks = Int64(Int32(bitPattern: earlier.timestamp &- frame.timestamp))
      try write(earlier, at: capturedAt + .nanoseconds(ticks * 1_000_000_000 / 90_000), id: id)
    }
    try write(frame, at: capturedAt, id: id)
  }

  private mutating func takeWaitingFrames() -> [ReceivedFrame] {
    defer { waitingFrames = [] }
    return waitingFrames
  }

  private mutating func write(_ frame: ReceivedFrame, at capturedAt: Instant, id: NodeID) throws {
    if video == nil {
      guard frame.isKeyframe else { return }
      video = try IVFWriter(path: try filePath(id) + ".ivf", size: frame.size)
    }
    let start = begin(at: capturedAt)
    let nanoseconds = max(0, (capturedAt - start).wholeNanoseconds)
    let ticks = UInt64(Double(nanoseconds) * Double(IVFWriter.ticksPerSecond) / 1e9)
    try video?.append(frame.data, timestamp: ticks)
  }

  package mutating func add(_ audio: DecodedAudio, id: NodeID) throws {
    guard let capturedAt = audio.capturedAt else {
      if waitingAudio.count < Self.waitingLimit { waitingAudio.append(audio) }
      return
    }
    let waiting = waitingAudio
    waitingAudio = []
    for earlier in waiting {
      let samples = Int64(Int32(bitPattern: earlier.timestamp &- audio.timestamp))
      try write(earlier, at: capturedAt + .nanoseconds(samples * 1_000_000_000 / 48_000), id: id)
    }
    try write(audio, at: capturedAt, id: id)
  }

  /// Places samples by their timestamps, which count the sender's samples; gaps become silence.
  private mutating func write(_ decoded: DecodedAudio, at capturedAt: Instant, id: NodeID) throws {
    if audio == nil { audio = try WAVWriter(path: try filePath(id) + ".wav") }
    let start = begin(at: capturedAt)
    var position: Int
    if let nextTimestamp {
      position = samplesWritten + Int(Int32(bitPattern: decoded.timestamp &- nextTimestamp))
    } else {
      position = Int((capturedAt - start).wholeNanoseconds / 1000 * 48 / 1000)
    }
    var pcm = decoded.pcm[...]
    let now = BootClock.now
    let passed = Int((now - (beganAt ?? now)).wholeNanoseconds / 1000 * 48 / 1000)
    if position > passed + Self.lead { position = samplesWritten }
    if position < samplesWritten {
      pcm = pcm.dropFirst(samplesWritten - position)
    } else if position > samplesWritten {
      try appendSilence(position - samplesWritten)
    }
    guard !pcm.isEmpty else { return }
    try audio?.append(Array(pcm))
    samplesWritten += pcm.count
    nextTimestamp = decoded.timestamp &+ UInt32(decoded.pcm.count)
  }

  /// The beginning of both files, chosen by whichever medium comes first.
  private mutating func begin(at capturedAt: Instant) -> Instant {
    if let origin { return origin }
    origin = capturedAt
    beganAt = BootClock.now
    return capturedAt
  }

  private mutating func appendSilence(_ samples: Int) throws {
    var left = samples
    while left > 0 {
      let piece = min(left, Self.silence.count)
      try audio?.append(Array(Self.silence.prefix(piece)))
      left -= piece
    }
    samplesWritten += samples
  }

  /// `NAME-ID`, with a number behind where an earlier recording has that name: nothing is
  /// overwritten.
  private mutating func filePath(_ id: NodeID) throws -> String {
    if let path { return path }
    let base = "\(directory)/\(DisplayText.fileName(name))-\(id.short)"
    var candidate = base
    var number = 2
    while access(candidate + ".ivf", F_OK) == 0 || access(candidate + ".wav", F_OK) == 0 {
      candidate = "\(base)-\(number)"
      number += 1
    }
    path = candidate
    return candidate
  }

  package mutating func close() {
    video?.close()
    audio?.close()
  }
}
