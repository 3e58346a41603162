import MusterBase
import MusterChannel
import MusterCore
import MusterDevices
import MusterDiscovery
import MusterStore
import MusterWire

/// Methods that write changes to the store and report messages once they are durable.
extension MusterNode {
  /// The writes requested by one call of a `Node` method, and the messages to report once the
  /// writes are durable.
  struct Remembered {
    var changes: [Store.Change] = []
    var messages: [Event] = []
    /// Changes that must be durable before the node sends them.
    var commits: [(changes: [Node.Change], id: CommitID)] = []
  }

  func remember(_ remembered: Remembered) {
    defer { for commit in remembered.commits { write(commit.changes, for: commit.id) } }
    guard let writer, !remembered.changes.isEmpty else {
      for message in remembered.messages { emit(message) }
      return
    }
    writer.write(remembered.changes) { [weak self] error in
      guard let self else { return }
      self.loop.execute {
        self.assumeIsolated { node in
          for message in remembered.messages { node.emit(message) }
          if let error, node.storeWarnings.take(at: node.now) { node.emit(.warning(error)) }
        }
      }
    }
  }

  /// Writes the changes of a commit, then reports the result to the node.
  private func write(_ changes: [Node.Change], for commit: CommitID) {
    guard let writer else { return perform(node.finish(commit, isDurable: true, at: now)) }
    writer.write(changes.map { .init($0, in: commit.channel) }) { [weak self] error in
      guard let self else { return }
      self.loop.execute {
        self.assumeIsolated { node in
          node.perform(node.node.finish(commit, isDurable: error == nil, at: node.now))
          if let error, node.storeWarnings.take(at: node.now) { node.emit(.warning(error)) }
        }
      }
    }
  }

  /// Waits until `changes` are durable; returns nil, or the error if they could not be written.
  func write(_ changes: [Store.Change]) async -> MusterError? {
    guard let writer, !changes.isEmpty else { return nil }
    return await withCheckedContinuation { continuation in
      writer.write(changes) { continuation.resume(returning: $0) }
    }
  }

  func loadTrust(of channel: ChannelID) {
    trust[channel] = TrustBook((try? store?.identities(of: channel)) ?? [])
  }

  /// The members whose name and key are stored, reachable or not.
  func correspondents(in channel: ChannelID) -> [NodeID] {
    trust[channel]?.identities.map(\.key) ?? []
  }

  /// Stores the first key seen for a name; warns if another key appears under the same name or one
  /// that looks like it, as the member joins or later.
  func noteIdentity(_ event: NodeEvent, in channel: ChannelID, _ remembered: inout Remembered) {
    let member: Member
    switch event {
    case .channel(.memberJoined(let joined)): member = joined
    case .channel(.memberUpdated(let updated)):
      guard updated.id != id, trust[channel]?.identity(of: updated.id, name: updated.name) == nil
      else { return }
      member = updated
    default: return
    }
    guard var book = trust[channel] else { return }
    let verdict = book.noted(member.name, member.id, at: WallClock.milliseconds / 1000)
    trust[channel] = book
    let who = "\(member.name) in \(node.name(of: channel) ?? "")"
    let hint = "this may be somebody else: compare codes by voice with muster verify"
    switch verdict {
    case .new, .known: break
    case .changed(let former):
      let keys = "\(member.id.short), not \(former.short)"
      emit(.warning(MusterError("\(who) has another key than before: \(keys)", hint: hint)))
    case .resembles(let name, let other):
      let keys = "\(member.id.short) is not \(other.short)"
      emit(.warning(MusterError("\(who) is named like \(name): \(keys)", hint: hint)))
    }
    if let identity = book.identity(of: member.id, name: member.name) {
      remembered.changes.append(.identity(identity, channel: channel))
    }
  }
}

extension Store.Change {
  /// Converts a change requested by the node into a change of the store.
  init(_ change: Node.Change, in channel: ChannelID) {
    self =
      switch change {
      case .entry(let bytes, let id): .keep(entry: bytes, id: id, channel: channel)
      case .forget(let ids): .forget(ids, channel: channel)
      case .delivered(let id): .delivered(id, channel: channel)
      case .key(let key): .key(key, channel: channel)
      case .met: .met(channel)
      }
  }
}
