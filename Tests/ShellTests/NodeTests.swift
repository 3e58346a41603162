import Glibc
import Muster
import MusterBase
import MusterChannel
import MusterCrypto
import MusterNetwork
import MusterStore
import Testing

/// Two real nodes over the loopback interface, through the library alone.
struct NodeTests {
  private func configuration(_ name: String, key: ChannelKey) -> Configuration {
    var configuration = Configuration()
    configuration.name = name
    configuration.channels = [Configuration.Channel(name: "test", source: .open(key))]
    configuration.call = true
    configuration.video = "test:320x180@15"
    configuration.audio = "tone"
    configuration.maxVideo = VideoSize(width: 320, height: 180)
    configuration.interfaces = ["lo"]
    configuration.isEphemeral = true
    return configuration
  }

  @Test(.timeLimit(.minutes(1)))
  func twoNodesMeetAndSeeEachOther() async throws {
    var entropy = Entropy.system
    let key = try #require(ChannelKey(secret: entropy.bytes(32)))
    let first = try await MusterNode.start(configuration("first", key: key))
    let second = try await MusterNode.start(configuration("second", key: key))
    var sawFrame = false
    for await event in second.events() {
      guard case .firstFrame(_, let member, _, _, let size) = event.event else { continue }
      #expect(member == first.id)
      #expect(size == VideoSize(width: 320, height: 180))
      sawFrame = true
      break
    }
    #expect(sawFrame)
    var reason: String?
    for await event in first.events() {
      if case .statistics(let statistics) = event.event, let peer = statistics.peers.first,
        let estimate = peer.estimatedKilobitsPerSecond
      {
        #expect(estimate >= 10 && peer.queueingDelay.map { $0 >= .zero } ?? false)
        await second.stop()
      }
      guard case .memberLeft(_, _, let why) = event.event else { continue }
      reason = why.rawValue
      break
    }
    #expect(reason == "left")
    await first.stop()
  }

  /// Auto-answer joins each call that the other node starts, and none again that it has left.
  @Test(.timeLimit(.minutes(1)))
  func anAnsweringNodeJoinsEveryCallThatOthersStart() async throws {
    var entropy = Entropy.system
    let key = try #require(ChannelKey(secret: entropy.bytes(32)))
    var settings = configuration("starter", key: key)
    (settings.call, settings.video, settings.audio) = (false, nil, nil)
    let starter = try await MusterNode.start(settings)
    (settings.name, settings.answersCalls) = ("hall", true)
    let hall = try await MusterNode.start(settings)
    await #expect(throws: MusterError.self) { try await hall.perform(.leaveCall()) }

    var steps: [String] = []
    var isKnown = false
    events: for await event in starter.events() {
      switch event.event {
      case .memberJoined(_, let member) where member.id == hall.id && !isKnown:
        isKnown = true
        try await starter.perform(.startCall())
      case .callJoined(_, _, let member) where member == hall.id:
        steps.append("joined")
        guard steps.count < 4 else { break events }
        try await hall.perform(.leaveCall())
        // The call goes on, but without it: there is nothing more to leave.
        await #expect(throws: MusterError.self) { try await hall.perform(.leaveCall()) }
      case .callLeft(_, _, let member, _) where member == hall.id:
        steps.append("left")
        try await starter.perform(.leaveCall())
      case .callEnded:
        steps.append("ended")
        try await starter.perform(.startCall())
      default: continue
      }
    }
    #expect(steps == ["joined", "left", "ended", "joined"])
    await starter.stop()
    await hall.stop()
  }

  /// As `muster ping` and `muster doctor --node` ask: over the control socket.
  @Test(.timeLimit(.minutes(1)))
  func aPingIsAnsweredAndTheReportHasTheLink() async throws {
    let fixture = StoreFixture()
    var entropy = Entropy.system
    let key = try #require(ChannelKey(secret: entropy.bytes(32)))
    var settings = configuration("first", key: key)
    (settings.call, settings.video, settings.audio) = (false, nil, nil)
    var others = settings
    others.name = "second"
    (settings.isEphemeral, settings.dataDirectory) = (false, fixture.path)
    let first = try await MusterNode.start(settings)
    let second = try await MusterNode.start(others)
    for await event in first.events() {
      guard case .memberJoined(_, let member) = event.event else { continue }
      #expect(member.id == second.id)
      break
    }

    var request = Administration.Request(.ping)
    request.member = "second"
    let reply = try #require(try await Administration.perform(request, data: fixture.path).ping)
    #expect(reply.member == second.id.short && reply.name == "second")
    let path = try #require(reply.paths.first)
    #expect(reply.paths.count == 1 && path.channel == "test" && path.via == nil)
    #expect(path.address != nil && path.rttMs.map { $0 > 0 } ?? false, "\(path)")

    var report: NodeReport
    repeat {
      // The channel's first timer is due within a second: gossip compares documents that often.
      let asked = try await Administration.perform(.init(.diagnose), data: fixture.path)
      report = try #require(asked.node)
    } while report.counters["wake.channel"] == 0
    #expect(report.id == first.id.short && report.uptime > 0)
    let link = try #require(report.links.first)
    #expect(report.links.count == 1 && link.channel == "test" && link.member == second.id.short)
    #expect(link.phase == "active" && link.address == path.address && link.via == nil)
    #expect(report.queues.contains { $0.name == "store" })
    await second.stop()
    await first.stop()
  }

  /// A node that keeps what it knows, in no call and without media.
  private func writer(in fixture: StoreFixture, _ channel: String) async throws -> MusterNode {
    var settings = configuration("writer", key: .fromName(channel))
    (settings.call, settings.video, settings.audio) = (false, nil, nil)
    (settings.isEphemeral, settings.dataDirectory) = (false, fixture.path)
    return try await MusterNode.start(settings)
  }

  /// The disk completes no write for a second, and the messages do not all fit the list of pending
  /// commits, so later ones have to wait.
  @Test(.timeLimit(.minutes(1)))
  func messagesFasterThanTheDiskAreSlowedDownAndNotRefused() async throws {
    let fixture = StoreFixture()
    let node = try await writer(in: fixture, "many messages")
    let release = try fixture.blockWrites(for: .seconds(1))
    for number in 0..<300 {
      try await node.perform(.say("\(number)"))
      // A mute needs no disk and is never held up by one.
      if number == 100 { try await node.perform(.mute(.audio)) }
    }
    try await release.value
    await node.stop()
  }

  /// While the disk completes no write, a channel is made and another is joined. The store gives up
  /// after 5 s, so both would fail if the event loop waited for them.
  @Test(.timeLimit(.minutes(1)))
  func administrationAndJoiningLeaveTheEventLoopToTheCall() async throws {
    let fixture = StoreFixture()
    let node = try await writer(in: fixture, "slow disk")
    let lock = try fixture.lockDatabase()
    var request = Administration.Request(.create)
    request.channel = "made"
    let create = request
    async let made = node.perform(.administer(create), from: .controlSocket)
    async let joined: Void = node.join(
      .init(name: "joined", source: .open(try #require(epochKey(3)).key)))
    while try await waiting(node) == 0 { await Task.yield() }
    try await node.perform(.mute(.audio))
    #expect(try await waiting(node) > 0)
    lock.release()
    #expect(try await made.channels.map(\.name) == ["made"])
    try await joined
    let listed = try await node.perform(
      .administer(Administration.Request(.list)), from: .controlSocket)
    #expect(listed.channels.count == 3)
    await node.stop()
  }

  /// The number of changes that wait for the disk.
  private func waiting(_ node: MusterNode) async throws -> Int {
    let reply = try await node.perform(
      .administer(Administration.Request(.diagnose)), from: .controlSocket)
    return reply.node?.queues.first { $0.name == "store" }?.waiting ?? 0
  }

  @Test func aDHTNeedsABuildWithOne() async throws {
    var configuration = configuration("first", key: .fromName("no DHT"))
    // No address at all, so that a build with a DHT refuses it, too.
    configuration.dht = ["nowhere"]
    do {
      _ = try await MusterNode.start(configuration)
      Issue.record("a node started with it")
    } catch {
      #expect(error.kind == .usage)
      #if DHT
        #expect(error.message.contains("not an address"))
      #else
        #expect(error.message == "this build has no DHT")
        #expect(error.hint.contains("swift build --traits DHT"))
      #endif
    }
  }

  @Test(.timeLimit(.minutes(1))) func aNodeWaitsForAShortCommand() async throws {
    let fixture = StoreFixture()
    var command = try DataDirectory.open(fixture.path)
    #expect(command != nil)
    var configuration = configuration("waits", key: .fromName("waits"))
    configuration.dataDirectory = fixture.path
    let start = Task { [configuration] in try await MusterNode.start(configuration) }
    try await Task.sleep(for: .milliseconds(200))
    command = nil
    await (try await start.value).stop()
  }

  @Test(.timeLimit(.minutes(1))) func aNodeDoesNotWaitForAnother() async throws {
    let fixture = StoreFixture()
    let other = try DataDirectory.open(fixture.path, as: .node)
    var configuration = configuration("second", key: .fromName("waits"))
    configuration.dataDirectory = fixture.path
    do {
      _ = try await MusterNode.start(configuration)
      Issue.record("a second node uses the directory")
    } catch {
      #expect(error.message.contains("in use by a node (process \(getpid()))"))
    }
    withExtendedLifetime(other) {}
  }

  @Test func aBusyPortIsAClearError() async throws {
    let key = ChannelKey.fromName("busy")
    let first = try await MusterNode.start(configuration("first", key: key))
    let port = try #require(first.listening.first?.port)
    var second = configuration("second", key: key)
    second.listen = "0.0.0.0:\(port)"
    do {
      _ = try await MusterNode.start(second)
      Issue.record("a second node got the same port")
    } catch {
      #expect(error.message.contains("in use"))
    }
    await first.stop()
  }
}
