import MusterBase
import MusterChannel
import MusterCore
import MusterDiscovery
import MusterStore
import MusterSystem
import MusterWire

/// Methods that write changes to the store and report messages once they are durable.
extension MusterNode {
  /// Writes what one call of a `Node` method requests, and the names and keys seen with it; reports
  /// the messages in their order, and to the node the outcome of its commits.
  func write(_ writes: NodeWrites, besides identities: [Store.Change]) {
    let changes = writes.changes.map { Store.Change($0.change, in: $0.channel) } + identities
    let messages = writes.messages.compactMap { shown in
      hostEvent(.channel(.message(shown.message)), in: shown.channel)
    }
    let show: @Sendable (isolated MusterNode, Bool) -> Void = { node, _ in
      for message in messages { node.emit(message) }
    }
    if writes.showsOnlyMessages(of: id) {
      write([], show)
      write(changes) { _, _ in }
    } else if !changes.isEmpty || !messages.isEmpty {
      write(changes, show)
    }
    for commit in writes.commits {
      write(commit.changes.map { .init($0, in: commit.id.channel) }) { node, isDurable in
        node.perform(node.node.finish(commit.id, isDurable: isDurable, at: node.now))
      }
    }
  }

  /// Writes changes, then calls `completion` on the event loop; warns if they could not be written.
  /// Without a store it is called at once, as if they were durable.
  private func write(
    _ changes: [Store.Change],
    _ completion: @escaping @Sendable (isolated MusterNode, _ isDurable: Bool) -> Void
  ) {
    guard let store else { return completion(self, true) }
    store.write(changes) { [weak self] error in
      guard let self else { return }
      self.loop.execute {
        self.assumeIsolated { node in
          completion(node, error == nil)
          if let error, node.storeWarnings.take(at: node.now) { node.emit(.warning(error)) }
        }
      }
    }
  }

  /// The members whose name and key are stored, reachable or not.
  func correspondents(in channel: ChannelID) -> [NodeID] {
    trust[channel]?.identities.map(\.key) ?? []
  }

  /// Stores the first key seen for a name; warns if another key appears under the same name or one
  /// that looks like it, as the member joins or later.
  func noteIdentity(_ event: NodeEvent, in channel: ChannelID, _ changes: inout [Store.Change]) {
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
      changes.append(.identity(identity, channel: channel))
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
