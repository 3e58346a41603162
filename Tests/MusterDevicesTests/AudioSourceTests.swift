import Glibc
import MusterBase
import MusterCodecs
import MusterDevices
import MusterSystem
import Testing

@Suite struct AudioSourceTests {
  private let scratch = Scratch()

  @Test func theToneSwellsWhenThePatternFlashes() throws {
    let source = try AudioSources.open("tone")
    var loud = 0
    // Slightly more than a second, so that it contains the start of a second.
    for _ in 0..<56 {
      let audio = try #require(try source.next())
      #expect(audio.pcm.count == 960)
      // Only packets away from the transitions between quiet and loud are judged.
      let middle = audio.capturedAt + .milliseconds(10)
      let sure = [-12, 12].map {
        TestPattern.flashes(at: middle.advanced(by: .milliseconds($0)))
      }
      let level = AudioLevel.dBov(audio.pcm)
      if sure == [true, true] {
        #expect(level <= 10)
        loud += 1
      }
      if sure == [false, false] { #expect(level >= 22) }
    }
    #expect(loud > 0)
  }

  @Test func aFileIsResampledLoopedAndPaced() throws {
    let source = try AudioSources.open(TestFiles.path("media/speech_16k.wav"))
    let start = BootClock.now
    var last: Instant?
    for _ in 0..<20 {
      let audio = try #require(try source.next())
      if let last {
        // Even steps, unless the machine stalled.
        let step = audio.capturedAt - last
        #expect(step == .milliseconds(20) || step > .milliseconds(200))
      }
      last = audio.capturedAt
    }
    #expect(BootClock.now - start >= .milliseconds(395))
    source.cancel()
    #expect(try source.next() == nil)
  }

  @Test func aFileShorterThanAFrameIsLooped() throws {
    let samples = [[UInt8]](repeating: [0xE8, 0x03], count: 100).flatMap { $0 }
    let path = scratch.write("short.wav", TestFiles.wav(bits: 16, audio: samples))
    let audio = try #require(try AudioSources.open(path).next())
    #expect(audio.pcm == [Int16](repeating: 1000, count: 960))
  }

  @Test func errorsSayWhatToDo() {
    for (specification, part) in [
      ("mic:nonsense", "muster devices"), ("/nowhere.wav", "check the path"),
      (scratch.write("bad.wav", [1, 2, 3]), "ffmpeg"),
      (scratch.write("empty.wav", TestFiles.wav(bits: 16, audio: [])), "name another file"),
    ] {
      do {
        _ = try AudioSources.open(specification)
        Issue.record("\(specification) opened")
      } catch { #expect(error.description.contains(part)) }
    }
    #expect(throws: DeviceError.self) { try AudioSinks.open("nonsense") }
    #expect(throws: DeviceError.self) { try AudioSinks.open("/nowhere/x.wav") }
  }

  @Test func aFileSinkKeepsPaceAndEverySample() throws {
    let path = scratch.path + "/out.wav"
    let sink = try AudioSinks.open(path)
    let start = BootClock.now
    for piece in 0..<10 { try sink.write([Int16](repeating: Int16(piece), count: 960)) }
    #expect(BootClock.now - start >= .milliseconds(195))
    sink.close()
    try sink.write([Int16](repeating: 99, count: 960))
    let reader = try WAVReader(path: path)
    #expect(try reader.next(20_000).count == 9600)
  }

  @Test(arguments: ["null", "none"])
  func aSinkWithoutAClockIsSlowedDown(name: String) throws {
    let sink = try AudioSinks.open(name)
    let start = BootClock.now
    let silence = [Int16](repeating: 0, count: 960)
    for _ in 0..<30 { try sink.write(silence) }
    // 600 ms of audio; ALSA's null device may be 200 ms early and 10 % fast.
    #expect(BootClock.now - start >= .milliseconds(300))
    sink.close()
  }

  @Test func aMicrophoneWithoutAClockIsSlowedDown() throws {
    let source = try AudioSources.open("mic:null")
    #expect(source.isLive)
    let start = BootClock.now
    for _ in 0..<30 { #expect(try source.next()?.pcm.count == 960) }
    #expect(BootClock.now - start >= .milliseconds(300))
    source.cancel()
    #expect(try source.next() == nil)
  }
}
