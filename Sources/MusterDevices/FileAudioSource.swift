import MusterBase
import MusterCodecs
import MusterSystem

/// A WAV file as an audio source: paced, resampled to 48 kHz and looped.
final class FileAudioSource: AudioSource, @unchecked Sendable {
  let isLive = false

  private let path: String
  private let cancellation: Cancellation
  private var reader: WAVReader
  private var resampler: Resampler?
  private var schedule: AudioSchedule?
  private var ready = [Int16]()

  init(path: String, cancellation: Cancellation) throws(DeviceError) {
    self.path = path
    self.cancellation = cancellation
    reader = try WAVReader(path: path, cancellation: cancellation)
    if reader.samplesPerSecond != AudioFormat.samplesPerSecond {
      do { resampler = try Resampler(from: reader.samplesPerSecond) } catch {
        throw DeviceError(
          what: "\(path): \(error.what)", hint: "convert it: ffmpeg -i FILE -ar 48000 OUT.wav")
      }
    }
    guard try fill() else {
      throw DeviceError(what: "\(path) holds no audio", hint: "name another file")
    }
  }

  func next() throws(DeviceError) -> CapturedAudio? {
    if cancellation.isCancelled { return nil }
    guard try fill() else {
      if cancellation.isCancelled { return nil }
      throw DeviceError(what: "\(path) holds no audio any longer", hint: "name another file")
    }
    let pcm = Array(ready.prefix(AudioFormat.samplesPerFrame))
    ready.removeFirst(pcm.count)
    var pace = schedule ?? AudioSchedule(start: BootClock.now)
    let start = pace.take(at: BootClock.now, frame: AudioFormat.frameDuration)
    schedule = pace
    guard cancellation.sleep(until: start + AudioFormat.frameDuration) else { return nil }
    return CapturedAudio(pcm: pcm, capturedAt: start)
  }

  func cancel() { cancellation.cancel() }

  /// Fills `ready` with 20 ms of audio; false if the file has no samples even after a rewind.
  private func fill() throws(DeviceError) -> Bool {
    var emptyReads = 0
    while ready.count < AudioFormat.samplesPerFrame {
      let piece = try reader.next(reader.samplesPerSecond / 50 + 1)
      if piece.isEmpty {
        emptyReads += 1
        if emptyReads == 2 { return false }
        reader = try WAVReader(path: path, cancellation: cancellation)
      } else {
        emptyReads = 0
        ready += resampler?.process(piece) ?? piece
      }
    }
    return true
  }
}
