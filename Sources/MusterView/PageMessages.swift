import Muster
import MusterBase
import MusterChannel

/// A cache of the newest messages of each channel, since the page is redrawn many times a second.
struct PageMessages {
  private var newest: [String: [TextMessage]] = [:]
  /// The last known names of members, for messages of members that have left.
  private var names = PeerTable<NodeID, String>()

  /// The maximum number of messages per channel, each of at most `Limits.textBytes` bytes.
  private static let shown = 50

  /// Starts to collect the messages of a channel; returns false if they are already being
  /// collected.
  mutating func begin(_ channel: String) -> Bool {
    guard newest[channel] == nil else { return false }
    newest[channel] = []
    return true
  }

  /// Loads the channel's earlier messages; the newest `shown` are kept.
  mutating func load(_ history: [TextMessage], of channel: String) {
    for message in history.suffix(Self.shown) { insert(message, channel) }
  }

  /// Drops the messages of channels that the node has left.
  mutating func keep(_ channels: [String]) {
    newest = newest.filter { channels.contains($0.key) }
  }

  mutating func noted(_ event: Event) {
    switch event {
    case .memberJoined(_, let member), .memberUpdated(_, let member):
      if names.count >= Limits.authors { names = PeerTable() }
      names[member.id] = member.name
    case .message(let channel, let message): insert(message, channel)
    default: break
    }
  }

  /// Inserts a message in the channel's order, because events may arrive in another order.
  private mutating func insert(_ message: TextMessage, _ channel: String) {
    guard var messages = newest[channel], !messages.contains(where: { $0.id == message.id }) else {
      return
    }
    let index = messages.lastIndex { ($0.counter, $0.from) <= (message.counter, message.from) }
    messages.insert(message, at: index.map { $0 + 1 } ?? 0)
    newest[channel] = messages.suffix(Self.shown)
  }

  func messages(of channel: String) -> [TextMessage] { newest[channel] ?? [] }

  func name(of member: NodeID) -> String { names[member] ?? member.short }
}
