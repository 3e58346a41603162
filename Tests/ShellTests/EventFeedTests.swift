import Muster
import MusterBase
import MusterCrypto
import Testing

/// Several consumers of one node's events.
struct EventFeedTests {
  private func start(_ name: String) async throws -> MusterNode {
    var configuration = Configuration()
    configuration.name = name
    configuration.channels = [.init(name: "feed", source: .open(.fromName("feed \(name)")))]
    configuration.interfaces = ["lo"]
    configuration.listen = "127.0.0.1:0"
    configuration.isEphemeral = true
    return try await MusterNode.start(configuration)
  }

  /// The messages and warnings of dropped events, up to `count` of them or the end of the events.
  private func texts(
    _ events: AsyncStream<TimedEvent>, upTo count: Int = .max
  ) async -> [String] {
    var texts: [String] = []
    for await event in events {
      if case .message(_, let message) = event.event { texts.append(message.text) }
      if case .warning(let error) = event.event, error.message.contains("dropped") {
        texts.append(error.message)
      }
      if texts.count == count { break }
    }
    return texts
  }

  @Test(.timeLimit(.minutes(1))) func everyConsumerGetsEveryEvent() async throws {
    let node = try await start("both")
    let (first, second) = (node.events(), node.events())
    for number in 0..<20 { try await node.say("\(number)", in: "feed") }
    let expected = (0..<20).map(String.init)
    #expect(await texts(first, upTo: 20) == expected)
    #expect(await texts(second, upTo: 20) == expected)
    await node.stop()
  }

  @Test(.timeLimit(.minutes(1))) func aSlowConsumerLearnsHowMuchItLost() async throws {
    let node = try await start("slow")
    let (slow, quick) = (node.events(capacity: 5), node.events())
    for number in 0..<20 { try await node.say("\(number)", in: "feed") }
    #expect(await texts(quick, upTo: 20).count == 20)
    await node.stop()
    let seen = await texts(slow)
    #expect(seen.first?.contains("events were dropped") == true)
    #expect(seen.count <= 6)
  }

  @Test(.timeLimit(.minutes(1))) func aCancelledReaderLeavesTheOthersAlone() async throws {
    let node = try await start("cancelled")
    let (first, second) = (node.events(), node.events())
    let reader = Task { await texts(first) }
    reader.cancel()
    _ = await reader.value
    try await node.say("still there", in: "feed")
    #expect(await texts(second, upTo: 1) == ["still there"])
    await node.stop()
    #expect(await texts(node.events()).isEmpty)
  }

  @Test(.timeLimit(.minutes(1))) func ownChangesAreEvents() async throws {
    let node = try await start("own")
    let events = node.events()
    try await node.setMuted(audio: true)
    try await node.setMuted(audio: false)
    await node.stop()
    var changes: [String] = []
    for await event in events {
      guard case .memberUpdated(_, let member) = event.event else { continue }
      changes.append(member.id.short)
    }
    // Without a microphone, the node always counts as muted, so no change is reported.
    #expect(changes.isEmpty)
  }
}
