import Foundation
import Glibc
import MusterBase
import MusterCodecs
import MusterDevices
import MusterSystem
import Testing

@Suite struct VideoSourceTests {
  private let scratch = Scratch()

  private func message(_ specification: String) -> String {
    do {
      _ = try VideoSources.open(specification)
      return ""
    } catch { return error.description }
  }

  @Test func thePatternKeepsItsPace() throws {
    let source = try VideoSources.open("test:64x48@100")
    #expect(source.format.size == VideoSize(width: 64, height: 48))
    #expect(source.format.framesPerSecond == 100 && source.format.isPattern)
    let start = BootClock.now
    var last: (number: UInt32, time: Instant)?
    for _ in 0..<30 {
      let captured = try #require(try source.next())
      let read = try #require(TestPattern.read(captured.frame))
      // The pattern's resolution is 100 us.
      #expect(captured.capturedAt - read.capturedAt < .microseconds(100))
      if let last {
        #expect(read.number > last.number && captured.capturedAt > last.time)
      }
      last = (read.number, captured.capturedAt)
    }
    // Frame n is due at start + n / rate, however late earlier ones were.
    let number = try #require(last).number
    let elapsed = BootClock.now - start
    #expect(elapsed >= .milliseconds(10 * Int(number) - 10))
    #expect(number >= 29)
  }

  @Test func cancellingWakesTheReader() async throws {
    let source = try VideoSources.open("test:64x48@1")
    _ = try source.next()
    let waiting = Task.detached { try source.next() == nil }
    source.cancel()
    #expect(try await waiting.value)
    #expect(try source.next() == nil)
  }

  @Test func aFileIsLoopedAtItsPace() throws {
    let path = scratch.write("loop.y4m", TestFiles.y4m(count: 3))
    let source = try VideoSources.open(path)
    #expect(source.format.framesPerSecond == 50 && !source.format.isPattern)
    let start = BootClock.now
    var numbers = [UInt32]()
    for _ in 0..<10 {
      let captured = try #require(try source.next())
      numbers.append(try #require(TestPattern.read(captured.frame)).number)
    }
    // Nine intervals of 20 ms.
    #expect(BootClock.now - start >= .milliseconds(175))
    #expect(Set(numbers) == [0, 1, 2])
  }

  @Test func ivfIsDecodedAndLooped() throws {
    let source = try VideoSources.open(TestFiles.path("media/bunny_320x180.ivf"))
    #expect(source.format.size == VideoSize(width: 320, height: 180))
    #expect(source.format.framesPerSecond == 25)
    for _ in 0..<3 { #expect(try source.next()?.frame.size == source.format.size) }
  }

  @Test func aFIFOIsReadWhileItIsWritten() throws {
    let path = scratch.fifo("pictures")
    let bytes = TestFiles.y4m(count: 2)
    // A dedicated thread: opening blocks, and the cooperative pool may be busy.
    Thread.detachNewThread {
      // Two writers in succession: the source continues with the second.
      for _ in 0..<2 {
        guard let file = fopen(path, "wb") else { return }
        fwrite(bytes, 1, bytes.count, file)
        fclose(file)
      }
    }
    let source = try VideoSources.open(path)
    var numbers = [UInt32]()
    for _ in 0..<2 {
      let captured = try #require(try source.next())
      numbers.append(try #require(TestPattern.read(captured.frame)).number)
    }
    #expect(numbers == [0, 1])
    let third = try #require(try source.next())
    #expect(TestPattern.read(third.frame)?.number == 0)
    source.cancel()
  }

  @Test func aFIFOWithoutAWriterCanBeCancelled() async {
    let path = scratch.fifo("silent")
    let cancellation = Cancellation()
    let opening = Task.detached {
      (try? VideoSources.open(path, cancellation: cancellation)) == nil
    }
    cancellation.cancel()
    #expect(await opening.value)
  }

  @Test func errorsSayWhatToDo() {
    #expect(message("/nowhere/x.y4m").hasSuffix("check the path"))
    #expect(message("/tmp").contains("is not a file"))
    #expect(message(scratch.write("a.txt", [1, 2, 3, 4, 5])).contains("neither Y4M nor IVF"))
    #expect(message(scratch.write("b.y4m", [])).contains("neither Y4M nor IVF"))
    for bad in ["test:", "test:0x0", "test:640x360@0", "test:640x360@9999", "test:9x9"] {
      #expect(message(bad).contains("is not a test pattern"), "\(bad)")
    }
    let header = TestFiles.y4m(count: 0)
    let empty = scratch.write("empty.y4m", header)
    #expect(throws: DeviceError.self) { try VideoSources.open(empty).next() }
  }

  @Test func aMissingCameraIsSaid() {
    #expect(message("camera:/nowhere").hasPrefix("no camera at /nowhere"))
    #expect(message("camera:/dev/null").contains("is not a camera"))
    if DeviceList.cameras().isEmpty, access("/dev/video0", F_OK) != 0 {
      #expect(message("camera") == "no camera found: plug one in, or use --video test")
    }
  }
}
