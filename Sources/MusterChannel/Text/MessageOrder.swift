import MusterBase
import MusterWire

/// The counters by which messages are listed: the Lamport counters, limited by those of the
/// predecessors that a message names.
///
/// Authors choose their Lamport counters. Without the limit, a message with the highest one would
/// be listed after all later messages, for good. With it, a message exceeds its predecessors by no
/// more than it raises the Lamport clock of whoever receives it, so that later messages follow it.
struct MessageOrder: Sendable {
  /// The counters of messages, by the first eight bytes of their ids; at most `Limits.messages`.
  private var counters = PeerTable<UInt64, UInt64>()
  /// The ids in `counters`, in the order of their insertion.
  private var byAge = RingBuffer<UInt64>(capacity: Limits.messages)

  /// The counter by which a message is listed, given those of its predecessors before. Without
  /// known predecessors it is limited like the first message of a channel.
  mutating func counter(of entry: SignedEntry) -> UInt64 {
    let id = entry.id.prefix
    if let known = counters[id] { return known }
    var latest: UInt64 = 0
    if case .message(let message) = entry.entry.body {
      for predecessor in message.after { latest = max(latest, counters[predecessor] ?? 0) }
    }
    let counter = min(entry.entry.lamport, latest + Document.lamportStep)
    counters[id] = counter
    if let oldest = byAge.append(id) { counters[oldest] = nil }
    return counter
  }

  /// Gives messages their counters, those of predecessors first.
  mutating func restore(_ messages: [SignedEntry]) {
    for entry in Self.causal(messages) { _ = counter(of: entry) }
  }

  /// The messages of a document in the order in which they are listed, with their counters.
  static func listed(_ messages: [SignedEntry]) -> [(entry: SignedEntry, counter: UInt64)] {
    var order = MessageOrder()
    order.restore(messages)
    return messages.map { ($0, order.counter(of: $0)) }
      .sorted { ($0.1, $0.0.entry.author, $0.0) < ($1.1, $1.0.entry.author, $1.0) }
  }

  /// The messages, each after its predecessors, whatever their counters say.
  private static func causal(_ messages: [SignedEntry]) -> [SignedEntry] {
    var indices = PeerTable<UInt64, Int>()
    for (index, entry) in messages.enumerated() { indices[entry.id.prefix] = index }
    var isVisited = messages.map { _ in false }
    var causal: [SignedEntry] = []
    var path: [(index: Int, predecessors: [Int])] = []
    func visit(_ index: Int) {
      guard !isVisited[index] else { return }
      isVisited[index] = true
      guard case .message(let message) = messages[index].entry.body else { return }
      path.append((index, message.after.compactMap { indices[$0] }))
    }
    for index in messages.indices {
      visit(index)
      // A loop, because a hostile chain is as long as the document.
      while let last = path.indices.last {
        if let next = path[last].predecessors.popLast() {
          visit(next)
        } else {
          causal.append(messages[path.removeLast().index])
        }
      }
    }
    return causal
  }
}
