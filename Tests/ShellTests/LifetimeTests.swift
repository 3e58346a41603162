import Foundation
import Muster
import MusterBase
import MusterSystem
import MusterWire
import Testing

/// What nodes hold while they start, while they run, and once they are gone.
struct LifetimeTests {
  private static func configuration(_ name: String) -> Configuration {
    var configuration = Configuration()
    configuration.name = name
    configuration.channels = [.init(name: "life", source: .open(.fromName("life")))]
    configuration.call = true
    configuration.video = "test:320x180@15"
    configuration.maxVideo = VideoSize(width: 320, height: 180)
    configuration.audio = "tone"
    configuration.speaker = "none"
    configuration.interfaces = ["lo"]
    configuration.isEphemeral = true
    return configuration
  }

  /// Half of the nodes are released without being stopped, and half of them have a data directory.
  @Test(.timeLimit(.minutes(10))) func nothingIsLeftOfNodesThatAreGone() async throws {
    let isAll = getenv("MUSTER_TESTS").map { String(cString: $0) == "all" } ?? false
    let fixture = StoreFixture()
    let before = Holdings.now
    var megabytes = 0.0
    for cycle in 0..<(isAll ? 1000 : 20) {
      if cycle == 4 { megabytes = ProcessUsage.residentMegabytes }
      weak var released: MusterNode?
      let reader = try await {
        var configuration = Self.configuration("node \(cycle)")
        if cycle % 4 < 2 {
          configuration.isEphemeral = false
          configuration.dataDirectory = "\(fixture.path)/\(cycle)"
        }
        let node = try await MusterNode.start(configuration)
        released = node
        let events = node.events()
        if cycle.isMultiple(of: 2) { await node.stop() }
        return Task { for await _ in events {} }
      }()
      await withTaskCancellationHandler {
        await reader.value
      } onCancel: {
        reader.cancel()
      }
      while released != nil { try await Task.sleep(for: .milliseconds(1)) }
    }
    try await Holdings.wait {
      $0.threads <= before.threads && $0.files <= before.files
        && $0.wakers <= before.wakers + Holdings.wakersOfPool
    }
    if isAll { #expect(ProcessUsage.residentMegabytes < megabytes + 20) }
  }

  /// Each of them waits for the writer of a FIFO: more of them than Swift has threads.
  @Test(.timeLimit(.minutes(1))) func nodesThatWaitForADeviceStallNobody() async throws {
    let fixture = StoreFixture()
    try FileManager.default.createDirectory(
      atPath: fixture.path, withIntermediateDirectories: true)
    let fifo = fixture.path + "/microphone"
    #expect(mkfifo(fifo, 0o600) == 0)
    let waiting = (0..<(sysconf(Int32(_SC_NPROCESSORS_ONLN)) + 1)).map { index in
      Task {
        var configuration = Self.configuration("waits \(index)")
        configuration.video = nil
        configuration.audio = fifo
        return try await MusterNode.start(configuration)
      }
    }
    try await Holdings.wait { $0.openers == waiting.count }
    let node = try await MusterNode.start(Self.configuration("goes on"))
    try await node.say("still here", in: "life")
    await node.stop()
    for task in waiting { task.cancel() }
    for task in waiting {
      let error = await #expect(throws: MusterError.self) { try await task.value }
      #expect(error?.message.contains("cancelled") == true)
    }
  }

  /// A viewer that does not return: messages and commands go on without it.
  @Test(.timeLimit(.minutes(1))) func aSlowViewerStallsNobody() async throws {
    let first = try await MusterNode.start(Self.configuration("watches"))
    let second = try await MusterNode.start(Self.configuration("is watched"))
    let (frames, shown) = AsyncStream.makeStream(of: ViewedFrame.self)
    let isBlocked = Monitor(true)
    await first.showFrames { frame in
      shown.yield(frame)
      isBlocked.wait { $0 ? nil : () }
    }
    var viewed = frames.makeAsyncIterator()
    _ = try #require(await viewed.next())

    var heard = first.events().makeAsyncIterator()
    try await second.say("do you see me?", in: "life")
    while case let event? = await heard.next()?.event {
      if case .message = event { break }
    }
    for isMuted in [true, false] { try await first.setMuted(audio: isMuted) }
    isBlocked.withLock { $0 = false }
    _ = try #require(await viewed.next())
    await first.showFrames(nil)
    await second.stop()
    await first.stop()
  }
}

/// The threads that Muster has started in this process, and the process's descriptors.
private struct Holdings {
  /// The event loops and timers of the thread pools, made when they are first used.
  static let wakersOfPool = 8

  var threads: Int
  /// Those of them that open a device.
  var openers: Int
  /// Files, sockets and pipes.
  var files = 0
  /// Descriptors without a file: of event loops, timers and cancellations.
  var wakers = 0

  static var now: Holdings {
    let names = entries(of: "/proc/self/task").map { text(of: "/proc/self/task/\($0)/comm") }
    var holdings = Holdings(
      threads: names.filter { $0.hasPrefix("muster-") }.count,
      openers: names.filter { $0.hasPrefix("muster-open") }.count)
    for descriptor in entries(of: "/proc/self/fd") {
      let target = try? FileManager.default.destinationOfSymbolicLink(
        atPath: "/proc/self/fd/\(descriptor)")
      if target?.contains("anon_inode") ?? false {
        holdings.wakers += 1
      } else {
        holdings.files += 1
      }
    }
    return holdings
  }

  static func wait(until isReached: (Holdings) -> Bool) async throws {
    while !isReached(now) { try await Task.sleep(for: .milliseconds(10)) }
  }

  private static func entries(of path: String) -> [String] {
    (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
  }

  private static func text(of path: String) -> String {
    (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
  }
}
