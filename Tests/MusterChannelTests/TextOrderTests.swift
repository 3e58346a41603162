import MusterBase
import MusterChannel
import MusterWire
import Testing

/// The order in which messages are listed, whatever counters their authors choose.
struct TextOrderTests {
  private var world = ChannelStateWorld.mesh(2)
  private var adversary = Pen(9)

  /// Lets the first node receive a message of the adversary; returns its id.
  private mutating func receive(
    _ text: String, after predecessors: [UInt64] = [], lamport: UInt64
  ) -> UInt64 {
    let entry = adversary.say(text, after: predecessors, lamport: lamport)
    let neighbour = world.ids[1]
    world.act(0) { $0.receive(.entry(entry.bytes), from: neighbour, at: $1) }
    world.run(for: .seconds(4))
    return entry.id.prefix
  }

  private func listed(_ index: Int) -> [String] { world.nodes[index].state.history.map(\.text) }

  /// The texts that a node has shown, listed by their counters as the page lists them.
  private func shown(_ index: Int) -> [String] {
    world.nodes[index].events.compactMap {
      if case .message(let message) = $0 { message } else { nil }
    }
    .sorted { ($0.counter, $0.from) < ($1.counter, $1.from) }.map(\.text)
  }

  @Test(arguments: [1 << 23, 1 << 24, 1 << 40, Entry.lamportLimit] as [UInt64])
  mutating func laterMessagesAreListedAfterOnesWithHighCounters(lamport: UInt64) {
    world.say(0, "before")
    world.run(for: .seconds(1))
    let flood = receive("flood", lamport: lamport)
    _ = receive("chain", after: [flood], lamport: lamport)
    _ = receive("invented predecessor", after: [5], lamport: lamport)
    world.say(0, "after")
    world.run(for: .seconds(1))
    world.say(1, "answer")
    world.run(for: .seconds(1))
    for index in 0...1 {
      #expect(listed(index).count == 6)
      #expect(listed(index).first == "before", "node \(index)")
      #expect(listed(index).suffix(2) == ["after", "answer"], "node \(index)")
      #expect(shown(index) == listed(index), "node \(index)")
    }
  }

  @Test mutating func countersAsTheProtocolDemandsAreKept() {
    for text in ["1", "2", "3"] {
      world.say(0, text)
      world.run(for: .seconds(1))
    }
    let counters = world.nodes[1].state.history.map(\.counter)
    let entries = world.nodes[1].state.entries.filter { $0.entry.body.kind == .message }
    #expect(counters == entries.map(\.entry.lamport))
  }
}
