import MusterBase
import MusterChannel
import MusterCore
import MusterCrypto
import MusterWire
import Testing

/// The outputs that concern the disk.
struct NodeWritesTests {
  private let key = ChannelKey.fromName("writes")
  private let now = Instant(nanoseconds: 1_000_000_000)

  /// A node that has said something which is now durable, and the time just before the message is
  /// shown.
  private func said() throws -> (outputs: [Node.Output], shown: [Node.Output], by: NodeID) {
    let identity = try #require(Identity(seed: [UInt8](repeating: 1, count: 32)))
    var node = Node(identity: identity, entropy: .seeded(2), seed: 3)
    _ = node.join(ChannelSetup(name: "writes", key: key), call: false, at: now)
    let outputs = try node.say("hello", to: nil, in: key.channelID, at: now)
    var writes = NodeWrites()
    _ = writes.take(outputs)
    let commit = try #require(writes.commits.first)
    let sent = node.finish(commit.id, isDurable: true, at: now)
    return (outputs, sent + node.tick(at: now + .seconds(1)), identity.id)
  }

  @Test func aMessageOfThisNodeIsShownAfterItsOwnWrite() throws {
    let (outputs, shown, own) = try said()
    var before = NodeWrites()
    _ = before.take(outputs)
    #expect(before.commits.count == 1 && before.changes.isEmpty && before.messages.isEmpty)
    guard case .entry(_, let id)? = before.commits.first?.changes.first else {
      Issue.record("the message is not in the commit")
      return
    }
    var after = NodeWrites()
    _ = after.take(shown)
    #expect(after.messages.map(\.message.id) == [id])
    #expect(after.changes.map(\.change) == [.delivered(id)])
    #expect(after.showsOnlyMessages(of: own))
    #expect(!after.showsOnlyMessages(of: NodeID(.zero)))
    #expect(!before.showsOnlyMessages(of: own))
  }

  @Test func everythingElseIsLeftToTheHostInItsOrder() throws {
    let (outputs, shown, _) = try said()
    let event = Node.Output.event(.callState(.connecting), in: key.channelID)
    let send = Node.Output.send([1], to: try #require(Address("127.0.0.1:1")))
    var writes = NodeWrites()
    #expect(
      writes.take([event] + outputs + [send] + shown + [event]).filter(isPlanted) == [
        event, send, event,
      ])
    #expect(writes.commits.count == 1 && writes.messages.count == 1)
  }

  private func isPlanted(_ output: Node.Output) -> Bool {
    switch output {
    case .send([1], _, _), .event(.callState, _): true
    default: false
    }
  }
}
