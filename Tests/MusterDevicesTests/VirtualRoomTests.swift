import Glibc
import MusterBase
import MusterCodecs
import MusterDevices
import MusterSystem
import Testing

/// The compiled ALSA plugin of `VirtualRoom/`, with a configuration that loads it.
final class VirtualRoom: Sendable {
  private let scratch = Scratch()

  /// Nil without a C compiler or libasound's headers.
  static let shared: VirtualRoom? = VirtualRoom()

  private init?() {
    let library = scratch.path + "/libasound_module_pcm_muster_room.so"
    let source = TestFiles.path("VirtualRoom/pcm_muster_room.c", inVectors: false)
    let command = [
      "cc", "-O2", "-fPIC", "-shared", "-o", library, source, "-lasound",
    ]
    guard Self.run(command) else { return nil }
    var configuration = "</usr/share/alsa/alsa.conf>\n"
    configuration += "pcm_type.muster_room { lib \"\(library)\" }\n"
    for name in ["room_microphone", "room_speaker", "second_speaker"] {
      configuration += "pcm.\(name) { type muster_room "
      configuration += "room \"\(scratch.path)/room\" unplug \"\(unplugPath)\" }\n"
    }
    let path = scratch.write("alsa.conf", [UInt8](configuration.utf8))
    setenv("ALSA_CONFIG_PATH", path, 1)
  }

  private var unplugPath: String { scratch.path + "/unplugged" }

  func unplug() { scratch.write("unplugged", []) }
  func plugIn() { unlink(unplugPath) }

  private static func run(_ command: [String]) -> Bool {
    var arguments: [UnsafeMutablePointer<CChar>?] = command.map { strdup($0) } + [nil]
    defer { for argument in arguments { free(argument) } }
    var process: pid_t = 0
    guard posix_spawnp(&process, command[0], nil, nil, &arguments, environ) == 0 else {
      return false
    }
    var status: Int32 = 0
    while waitpid(process, &status, 0) < 0 && errno == EINTR {}
    return status == 0
  }
}

@Suite(
  .serialized,
  .enabled(if: VirtualRoom.shared != nil, "needs a C compiler and libasound2-dev"))
struct VirtualRoomTests {
  private let silence = [Int16](repeating: 0, count: 960)
  private let burst = (0..<960).map { Int16(20_000 * sin(Double($0) * 0.13)) }

  @Test func playedAudioIsHeardSoon() throws {
    let microphone = try AudioSources.open("mic:room_microphone")
    let speaker = try AudioSinks.open("room_speaker")
    var playedAt: Instant?
    var latencies = [Duration]()
    for index in 0..<150 {
      let isBurst = index % 25 == 12
      if isBurst { playedAt = BootClock.now }
      try speaker.write(isBurst ? burst : silence)
      #expect(speaker.delay <= .milliseconds(120))
      let audio = try #require(try microphone.next())
      let loud = audio.pcm.firstIndex { abs(Int($0)) > 8000 }
      if let start = playedAt, let loud {
        let heard = audio.capturedAt + .microseconds(loud * 1_000_000 / 48_000)
        latencies.append(heard - start)
        playedAt = nil
      }
    }
    // Six bursts; a busy machine may lose some to underruns.
    try #require(latencies.count >= 3)
    latencies.sort()
    // After an underrun, one burst may be played almost at once; most are played later.
    #expect(latencies[0] > .zero && latencies[0] < .milliseconds(100), "\(latencies)")
    #expect(latencies[latencies.count / 2] > .milliseconds(5), "\(latencies)")
  }

  @Test func speakersOfARoomAreMixed() throws {
    let microphone = try AudioSources.open("mic:room_microphone")
    let first = try AudioSinks.open("room_speaker")
    let second = try AudioSinks.open("second_speaker")
    var peak: Int16 = 0
    for _ in 0..<60 {
      try first.write([Int16](repeating: 1000, count: 960))
      try second.write([Int16](repeating: 500, count: 960))
      peak = max(peak, try #require(try microphone.next()).pcm.max() ?? 0)
    }
    #expect(peak == 1500)
  }

  @Test func theDeviceSetsThePace() throws {
    let microphone = try AudioSources.open("mic:room_microphone")
    let start = BootClock.now
    var last: Instant?
    for _ in 0..<50 {
      let audio = try #require(try microphone.next())
      if let last { #expect(audio.capturedAt > last) }
      last = audio.capturedAt
    }
    let elapsed = BootClock.now - start
    #expect(elapsed >= .milliseconds(880))
  }

  @Test func anOverrunIsSurvived() throws {
    let microphone = try AudioSources.open("mic:room_microphone")
    _ = try microphone.next()
    // Half a second without a read, which overruns the device's buffer.
    let clock = try AudioSinks.open("none")
    for _ in 0..<25 { try clock.write(silence) }
    var audio: CapturedAudio?
    for _ in 0..<6 { audio = try microphone.next() }
    let age = BootClock.now - (try #require(audio).capturedAt)
    #expect(age < .milliseconds(300))
  }

  @Test func anUnderrunIsSurvived() throws {
    let speaker = try AudioSinks.open("room_speaker")
    for _ in 0..<5 { try speaker.write(silence) }
    let clock = try AudioSinks.open("none")
    for _ in 0..<15 { try clock.write(silence) }
    for _ in 0..<10 { try speaker.write(silence) }
    #expect(speaker.delay > .zero)
  }

  @Test func aPulledDeviceIsAnErrorAndComesBack() throws {
    let room = try #require(VirtualRoom.shared)
    let microphone = try AudioSources.open("mic:room_microphone")
    let speaker = try AudioSinks.open("room_speaker")
    _ = try microphone.next()
    try speaker.write(silence)
    room.unplug()
    defer { room.plugIn() }
    var errors = [String]()
    for _ in 0..<20 where errors.isEmpty {
      do { _ = try microphone.next() } catch { errors.append(error.description) }
    }
    #expect(errors.first?.contains("is gone") == true)
    #expect(throws: DeviceError.self) { for _ in 0..<20 { try speaker.write(silence) } }
    #expect(throws: DeviceError.self) { try AudioSources.open("mic:room_microphone") }
    room.plugIn()
    let again = try AudioSources.open("mic:room_microphone")
    #expect(try again.next()?.pcm.count == 960)
  }

  @Test func cancellingEndsAMicrophone() async throws {
    let microphone = try AudioSources.open("mic:room_microphone")
    let reading = Task.detached {
      while try microphone.next() != nil {}
      return true
    }
    microphone.cancel()
    #expect(try await reading.value)
  }
}
