import MusterBase
import MusterChannel
import MusterCore
import MusterDevices
import MusterDiscovery
import MusterStore
import MusterWire

/// What is remembered, and what is told only once it is.
extension MusterNode {
  /// What one call of the node asks to remember, and the messages that come with it.
  struct Remembered {
    var changes: [Store.Change] = []
    var messages: [Event] = []
  }

  func remember(_ remembered: Remembered) {
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

  /// Returns once `changes` are on the disk, or with what went wrong.
  func write(_ changes: [Store.Change]) async -> MusterError? {
    guard let writer, !changes.isEmpty else { return nil }
    return await withCheckedContinuation { continuation in
      writer.write(changes) { continuation.resume(returning: $0) }
    }
  }

  func loadTrust(of channel: ChannelID) {
    trust[channel] = TrustBook((try? store?.identities(of: channel)) ?? [])
  }

  /// Members that are known by name and key here, also those who are away.
  func correspondents(in channel: ChannelID) -> [NodeID] {
    trust[channel]?.identities.map(\.key) ?? []
  }

  /// The first key seen for a name is remembered; another one for the same name is a warning.
  func noteIdentity(_ event: NodeEvent, in channel: ChannelID, _ remembered: inout Remembered) {
    guard case .channel(.memberJoined(let member)) = event, var book = trust[channel] else {
      return
    }
    let seconds = WallClock.milliseconds / 1000
    let verdict = book.noted(member.name, member.id, at: seconds)
    trust[channel] = book
    if case .changed(let former) = verdict {
      emit(
        .warning(
          MusterError(
            "\(member.name) in \(node.name(of: channel) ?? "") has another key than before: "
              + "\(member.id.short), not \(former.short)",
            hint: "this may be somebody else: compare codes by voice with muster verify")))
    }
    if let identity = book.identity(of: member.id, name: member.name) {
      remembered.changes.append(.identity(identity, channel: channel))
    }
  }
}

extension Store.Change {
  /// What an output of the node asks to be remembered, if it is such a one.
  init?(_ output: Node.Output) {
    switch output {
    case .keep(let entry, let id, let channel):
      self = .keep(entry: entry, id: id, channel: channel)
    case .forget(let ids, let channel): self = .forget(ids, channel: channel)
    case .shown(let id, let channel): self = .shown(id, channel: channel)
    case .keepKey(let key, let channel): self = .key(key, channel: channel)
    case .send, .broadcast, .event, .encode, .encodeKeyframe, .show, .play, .mediaEnded: return nil
    }
  }
}
