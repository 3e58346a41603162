import MusterBase
import MusterSystem
import Synchronization
import Testing

/// What a loop has done, in order.
private final class Trace: Sendable {
  private let texts = Mutex<[String]>([])

  var all: [String] { texts.withLock { $0 } }

  func add(_ text: String) { texts.withLock { $0.append(text) } }
}

/// An actor whose executor is a loop.
private actor Resident {
  let loop: PollLoop
  private var count = 0

  nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  init(on loop: PollLoop) { self.loop = loop }

  func add() -> Int {
    loop.checkIsolated()
    count += 1
    return count
  }
}

private func newLoop() throws -> PollLoop { try #require(PollLoop("muster-test")) }

@Test func aLoopRunsAnActorsJobsAndWhatOthersGiveItInOrder() async throws {
  let (loop, trace) = (try newLoop(), Trace())
  let resident = Resident(on: loop)
  #expect(await resident.add() == 1)
  for number in 0..<100 { loop.execute { trace.add("\(number)") } }
  await loop.submit { resident.assumeIsolated { _ = $0.add() } }
  #expect(trace.all == (0..<100).map(String.init))
  #expect(await resident.add() == 3)
}

@Test func timersFireInTheirOrderAndAtMostOnceForEachTime() async throws {
  let (loop, trace) = (try newLoop(), Trace())
  let (ends, end) = AsyncStream<Void>.makeStream()
  let reset = loop.timer { trace.add("reset") }
  let cancelled = loop.schedule(at: BootClock.now) { trace.add("cancelled") }
  cancelled.cancel()
  await loop.submit {
    let now = BootClock.now
    loop.schedule(at: now + .milliseconds(40)) {
      trace.add("last")
      end.finish()
    }
    loop.schedule(at: now + .milliseconds(10)) { trace.add("first") }
    reset.set(now + .milliseconds(1))
    reset.set(now + .milliseconds(25))
  }
  for await _ in ends {}
  await loop.submit { reset.set(nil) }
  #expect(trace.all == ["first", "reset", "last"])
}

@Test func aRepeatedTimerGoesOnUntilItIsCancelled() async throws {
  let (loop, trace) = (try newLoop(), Trace())
  let (beats, beat) = AsyncStream<Void>.makeStream()
  let timer = loop.every(.milliseconds(1)) {
    trace.add("beat")
    beat.yield()
  }
  var count = 0
  for await _ in beats {
    count += 1
    if count == 3 { break }
  }
  await loop.submit { timer.cancel() }
  let before = trace.all.count
  await loop.submit {}
  await loop.submit {}
  #expect(before >= 3 && trace.all.count == before)
}

@Test func aLoopWatchesDescriptorsAndClosesThem() async throws {
  let (loop, trace) = (try newLoop(), Trace())
  var ends: [Int32] = [-1, -1]
  #expect(pipe(&ends) == 0)
  let (reading, writing) = (ends[0], ends[1])
  let (reads, done) = AsyncStream<Void>.makeStream()
  let watch = loop.watch(reading) {
    var byte: UInt8 = 0
    let count = read(reading, &byte, 1)
    trace.add("\(count) \(byte)")
    done.yield()
    return false
  }
  var next = reads.makeAsyncIterator()
  for byte: UInt8 in [1, 2] {
    #expect(write(writing, [byte], 1) == 1)
    await next.next()
  }
  #expect(trace.all == ["1 1", "1 2"])
  watch.close()
  watch.close()
  await loop.submit {}
  // The reading end is gone: the process would be ended by the signal if it were not ignored.
  signal(SIGPIPE, SIG_IGN)
  #expect(write(writing, [3], 1) == -1 && errno == EPIPE)
  close(writing)
}

/// Until the loop has something else to do, and unless the reader has left something.
@Test func whatComesSoonAfterTheLastReadGathers() async throws {
  let (loop, trace) = (try newLoop(), Trace())
  var ends: [Int32] = [-1, -1]
  #expect(pipe(&ends) == 0)
  let (reading, writing) = (ends[0], ends[1])
  await loop.submit { loop.coalescing = .seconds(3600) }
  let (reads, done) = AsyncStream<Void>.makeStream()
  let watch = loop.watch(reading) {
    var bytes: [UInt8] = [0, 0, 0]
    let count = read(reading, &bytes, bytes.count)
    trace.add("\(count)")
    done.yield()
    return count == bytes.count
  }
  var next = reads.makeAsyncIterator()
  #expect(write(writing, [1, 2, 3, 4], 4) == 4)
  await next.next()
  await next.next()
  #expect(trace.all == ["3", "1"], "it has read on")
  // A loop that did not wait would read them one by one.
  for byte: UInt8 in [5, 6] {
    #expect(write(writing, [byte], 1) == 1)
    usleep(20_000)
  }
  #expect(trace.all == ["3", "1"])
  loop.execute {}
  await next.next()
  #expect(trace.all == ["3", "1", "2"])
  watch.close()
  close(writing)
}

@Test func aReleasedLoopEndsAndClosesWhatItWatches() async throws {
  var ends: [Int32] = [-1, -1]
  #expect(pipe(&ends) == 0)
  let trace = Trace()
  do {
    let loop = try newLoop()
    _ = loop.watch(ends[0]) { false }
    for number in 0..<10 { loop.execute { trace.add("\(number)") } }
    await loop.submit {}
  }
  // Its thread ends soon, as the end of the pipe shows.
  var polled = pollfd(fd: ends[1], events: 0, revents: 0)
  #expect(poll(&polled, 1, 60_000) == 1 && polled.revents & Int16(POLLERR) != 0)
  #expect(trace.all == (0..<10).map(String.init))
  close(ends[1])
}

/// A closure that a loop has called may hold the loop, such as one that closes a watch.
@Test func aLoopKeepsNothingOfWhatItHasDone() async throws {
  weak var released: PollLoop?
  do {
    let loop = try newLoop()
    released = loop
    loop.execute { _ = loop }
    await loop.submit {}
  }
  // The thread lets go of it when it has no more to do.
  while released != nil { await Task.yield() }
}
