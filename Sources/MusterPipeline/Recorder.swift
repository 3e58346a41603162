import MusterBase
import MusterCore
import MusterDevices
import MusterMedia
import MusterSystem

/// Records received media: one `.ivf` file per video stream and one `.wav` file per remote
/// participant.
///
/// All files of a member start at the same time on the sender's media clock, the origin of frame
/// timestamps and sample indices, so that video and audio are synchronised.
package final class Recorder: Sendable {
  private enum Input: Sendable {
    case frame(ReceivedFrame, MemberStream, name: String)
    case audio(DecodedAudio, LinkID)
    case ended(File)
  }

  /// The source of one recording file.
  private enum File: Equatable {
    case video(MemberStream)
    case audio(LinkID)
  }

  /// Queue limits for a stalled disk: two seconds of 17 members at 30 frames and 50 packets per
  /// second.
  private static let frameCapacity = 1024
  private static let audioCapacity = 2048

  /// The time between two batches of writes: to wake for each frame, hundreds of times a second in
  /// a mesh, takes CPU time that encoders lack.
  private static let interval = Duration.milliseconds(100)

  private let directory: String
  private let isStopping = Monitor(false)
  private let inputs = FrameQueue<Input, File>(
    encoded: frameCapacity, independent: audioCapacity
  ) { input in
    switch input {
    case .frame(let frame, let stream, _):
      .encoded(.video(stream), temporalLayer: frame.temporalLayer, isKeyframe: frame.isKeyframe)
    case .audio(_, let link): .independent(.audio(link))
    case .ended(let file): .control(file)
    }
  }
  private let names = Monitor(PeerTable<LinkID, String>())

  /// Creates the directory if necessary; throws if it is not writable.
  package init(directory: String) throws(MusterError) {
    self.directory = directory
    if mkdir(directory, 0o700) != 0, errno != EEXIST {
      throw MusterError(
        "cannot make the directory \(directory) (\(SystemError.last))",
        hint: "check the path and its permissions")
    }
    guard access(directory, W_OK | X_OK) == 0 else {
      throw MusterError(
        "cannot write to \(directory) (\(SystemError.last))", hint: "choose another with --record")
    }
  }

  /// Sets the member name used in file names; has no effect while files of the member are open.
  package func setName(_ name: String, of link: LinkID) { names.withLock { $0[link] = name } }

  /// Queues a frame; `name` is the stream's name in its offer, which becomes part of the file name
  /// except for the camera. Returns a stream that needs a keyframe because a slow disk caused
  /// frames to be dropped; otherwise nil.
  package func add(
    _ frame: ReceivedFrame, of stream: MemberStream, name: String
  ) -> MemberStream? {
    guard
      case .needsKeyframe(.video(let other)) = inputs.add(.frame(frame, stream, name: name))
    else { return nil }
    return other
  }

  package func add(_ audio: DecodedAudio, from link: LinkID) { inputs.add(.audio(audio, link)) }

  /// Finishes all files of a member, or the file of one video stream.
  package func end(_ link: LinkID, _ stream: StreamID? = nil) {
    for ended in stream.map({ [$0] }) ?? StreamID.all {
      inputs.add(.ended(.video(MemberStream(link, ended))))
    }
    if stream == nil { inputs.add(.ended(.audio(link))) }
  }

  package func start(_ failed: @escaping @Sendable (MusterError) -> Void) -> WorkerThread {
    WorkerThread("muster-record") { self.run(failed) }
  }

  /// Ends the recording once the queued input has been written.
  package func stop() {
    inputs.close()
    isStopping.withLock { $0 = true }
  }

  /// The fill level of the input queue, which holds video frames, decoded audio and end-of-media
  /// markers.
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
      let next = BootClock.now + Self.interval
      _ = isStopping.wait(until: { _ in next }) { $0 ? () : nil }
    }
    for index in 0..<tracks.count {
      do { try tracks[at: index].close() } catch {
        failed(MusterError("the end of a recording is lost (\(error))", hint: "check the disk"))
      }
    }
  }

  private func take(_ input: Input, _ tracks: inout PeerTable<LinkID, Track>) throws {
    switch input {
    case .frame(let frame, let stream, let name):
      try tracks[at: track(of: stream.link, &tracks)].add(frame, of: stream.stream, name: name)
    case .audio(let audio, let link):
      try tracks[at: track(of: link, &tracks)].add(audio)
    case .ended(.video(let stream)):
      try close(stream.link, &tracks) { track throws in try track.close(stream.stream) }
    case .ended(.audio(let link)):
      try close(link, &tracks) { track throws in try track.closeAudio() }
    }
  }
}

extension Recorder {
  /// Finishes files of a member with `body`; removes the member's track when no file is left open.
  private func close(
    _ link: LinkID, _ tracks: inout PeerTable<LinkID, Track>, _ body: (inout Track) throws -> Void
  ) throws {
    guard let index = tracks.index(of: link) else { return }
    try body(&tracks[at: index])
    if !tracks[at: index].isOpen { tracks[link] = nil }
  }

  /// The index of a member's track in the table; creates the track if necessary.
  private func track(of link: LinkID, _ tracks: inout PeerTable<LinkID, Track>) -> Int {
    if let index = tracks.index(of: link) { return index }
    let name = names.withLock { $0[link] } ?? "member"
    tracks[link] = Track(directory: directory, name: name, id: link.peer)
    return tracks.index(of: link) ?? 0  // inserted above
  }
}

/// The recording of one video stream.
private struct VideoTrack {
  var file: IVFWriter?
  /// The stream's name in its offer.
  var name = ""
  /// Frames received before their capture time was known.
  var waiting: [ReceivedFrame] = []
  /// Their bytes.
  var waitingBytes = 0

  mutating func hold(_ frame: ReceivedFrame) {
    waiting.append(frame)
    waitingBytes += frame.data.count
  }

  mutating func takeWaiting() -> [ReceivedFrame] {
    defer { (waiting, waitingBytes) = ([], 0) }
    return waiting
  }
}

/// The recording of one member.
private struct Track {
  private let directory: String
  private let name: String
  private let id: NodeID
  private var path: String?
  /// The video recordings, by the index of the stream.
  private var video = Array(repeating: VideoTrack(), count: Limits.videoStreams)
  private var audio: WAVWriter?
  /// The start time of all files, on the sender's media clock.
  private var origin: Instant?
  /// Audio received before its capture time was known.
  private var waitingAudio: [DecodedAudio] = []
  private var nextTimestamp: UInt32?
  private var samplesWritten = 0
  /// The time at which `origin` was set, by this node's boot clock.
  private var beganAt: Instant?

  /// The maximum number of frames held per stream until the first sender report: two seconds of
  /// audio.
  private static let waitingLimit = 100
  /// The maximum number of bytes of these frames, of each stream.
  private static let waitingBytes = 4 << 20
  /// The maximum number of samples by which a file may be ahead of real time (5 s), so that jumping
  /// timestamps cannot fill the disk with silence.
  private static let lead = 5 * 48_000
  /// One second of silence, the unit in which gaps are filled.
  private static let silence = [Int16](repeating: 0, count: 48_000)

  init(directory: String, name: String, id: NodeID) {
    self.directory = directory
    self.name = name
    self.id = id
  }

  mutating func add(_ frame: ReceivedFrame, of stream: StreamID, name: String) throws {
    let index = stream.index
    video[index].name = name
    guard let capturedAt = frame.capturedAt else {
      if video[index].waiting.count < Self.waitingLimit,
        video[index].waitingBytes + frame.data.count <= Self.waitingBytes
      {
        video[index].hold(frame)
      }
      return
    }
    try writeWaiting(of: stream, until: frame.timestamp, at: capturedAt)
    try write(frame, of: stream, at: capturedAt)
  }

  /// Writes the frames that were held back, now that the capture time of one timestamp is known.
  private mutating func writeWaiting(
    of stream: StreamID, until timestamp: UInt32, at capturedAt: Instant
  ) throws {
    for earlier in video[stream.index].takeWaiting() {
      let ticks = Int64(Int32(bitPattern: earlier.timestamp &- timestamp))
      let at = capturedAt + .nanoseconds(ticks * 1_000_000_000 / 90_000)
      try write(earlier, of: stream, at: at)
    }
  }

  private mutating func write(
    _ frame: ReceivedFrame, of stream: StreamID, at capturedAt: Instant
  ) throws {
    if video[stream.index].file == nil {
      guard frame.isKeyframe else { return }
      video[stream.index].file = try IVFWriter(path: try videoPath(stream), size: frame.size)
    }
    let start = begin(at: capturedAt)
    let nanoseconds = max(0, (capturedAt - start).wholeNanoseconds)
    let ticks = UInt64(Double(nanoseconds) * Double(IVFWriter.ticksPerSecond) / 1e9)
    try video[stream.index].file?.append(frame.data, timestamp: ticks)
  }

  mutating func add(_ audio: DecodedAudio) throws {
    guard let capturedAt = audio.capturedAt else {
      if waitingAudio.count < Self.waitingLimit { waitingAudio.append(audio) }
      return
    }
    try writeWaitingAudio(until: audio.timestamp, at: capturedAt)
    try write(audio, at: capturedAt)
  }

  private mutating func writeWaitingAudio(until timestamp: UInt32, at capturedAt: Instant) throws {
    let waiting = waitingAudio
    waitingAudio = []
    for earlier in waiting {
      let samples = Int64(Int32(bitPattern: earlier.timestamp &- timestamp))
      try write(earlier, at: capturedAt + .nanoseconds(samples * 1_000_000_000 / 48_000))
    }
  }

  /// Writes samples at the position given by their RTP timestamp: fills gaps with silence and drops
  /// samples whose position is already written.
  private mutating func write(_ decoded: DecodedAudio, at capturedAt: Instant) throws {
    if audio == nil { audio = try WAVWriter(path: try filePath() + ".wav", isNew: true) }
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

  /// Returns the start time of all files on the sender's media clock; the first frame of audio or
  /// video sets it to `capturedAt`.
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

  /// `NAME-ID.ivf` for the camera and `NAME-ID-STREAM.ivf` for other streams, with a numeric suffix
  /// if the file exists.
  private mutating func videoPath(_ stream: StreamID) throws -> String {
    let base = try filePath()
    guard stream != .camera else { return base + ".ivf" }
    let name = video[stream.index].name
    return Self.unused("\(base)-\(DisplayText.fileName(name))") { Self.isFree($0 + ".ivf") }
      + ".ivf"
  }

  /// `NAME-ID`, with a numeric suffix if an earlier recording has that name, so that no file is
  /// overwritten.
  private mutating func filePath() throws -> String {
    if let path { return path }
    let base = "\(directory)/\(DisplayText.fileName(name))-\(id.short)"
    let unused = Self.unused(base) { base in
      [".ivf", ".wav", "-\(StreamID.screen).ivf"].allSatisfy { Self.isFree(base + $0) }
    }
    path = unused
    return unused
  }

  /// Whether there is nothing under this name, not even a symbolic link that leads nowhere.
  private static func isFree(_ path: String) -> Bool {
    faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) != 0
  }

  private static func unused(_ base: String, _ isFree: (String) -> Bool) -> String {
    var candidate = base
    var number = 2
    while !isFree(candidate) {
      candidate = "\(base)-\(number)"
      number += 1
    }
    return candidate
  }

  /// Whether any file is open or yet to be opened.
  var isOpen: Bool {
    audio != nil || !waitingAudio.isEmpty
      || video.contains { $0.file != nil || !$0.waiting.isEmpty }
  }

  /// Finishes a stream. One that ended before the first sender report begins with the others, or
  /// where its first frame is.
  mutating func close(_ stream: StreamID) throws {
    defer {
      video[stream.index].file?.close()
      video[stream.index] = VideoTrack()
    }
    if let first = video[stream.index].waiting.first {
      try writeWaiting(of: stream, until: first.timestamp, at: origin ?? BootClock.now)
    }
  }

  mutating func closeAudio() throws {
    defer {
      audio?.close()
      audio = nil
    }
    if let first = waitingAudio.first {
      try writeWaitingAudio(until: first.timestamp, at: origin ?? BootClock.now)
    }
  }

  /// Finishes all files; throws the first error.
  mutating func close() throws {
    let video = StreamID.all.map { stream in Result { try close(stream) } }
    let audio = Result { try closeAudio() }
    for outcome in video + [audio] { try outcome.get() }
  }
}
