import Muster
import MusterBase
import MusterChannel

/// The newest messages of each channel, ready for a page that is redrawn many times a second.
struct PageMessages {
  private var newest: [String: [TextMessage]] = [:]
  /// Names of members that were here, for messages of those who have left.
  private var names = PeerTable<NodeID, String>()

  /// Messages on the page, of `Limits.textBytes` each at most.
  private static let shown = 50

  /// Takes in messages of a channel from now on; false when it does already.
  mutating func begin(_ channel: String) -> Bool {
    guard newest[channel] == nil else { return false }
    newest[channel] = []
    return true
  }

  /// Loads the channel's earlier messages; the newest `shown` are kept.
  mutating func load(_ history: [TextMessage], of channel: String) {
    for message in history.suffix(Self.shown) { insert(message, channel) }
  }

  /// Drops channels that the node has left.
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

  /// In the order of the channel: events do not reach the page in theirs.
  private mutating func insert(_ message: TextMessage, _ channel: String) {
    guard var messages = newest[channel], !messages.contains(where: { $0.id == message.id }) else {
      return
    }
    let index = messages.lastIndex { ($0.lamport, $0.from) <= (message.lamport, message.from) }
    messages.insert(message, at: index.map { $0 + 1 } ?? 0)
    newest[channel] = messages.suffix(Self.shown)
  }

  func messages(of channel: String) -> [TextMessage] { newest[channel] ?? [] }

  func name(of member: NodeID) -> String { names[member] ?? member.short }
}
