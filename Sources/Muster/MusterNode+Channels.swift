import MusterBase
import MusterChannel
import MusterCore
import MusterCrypto
import MusterStore
import MusterWire

/// Methods for joining and leaving channels while the node runs.
extension MusterNode {
  /// Joins another channel; throws if the channel cannot be opened, or if the node is in this
  /// channel already, is in `Limits.channels` channels, or is stopping.
  public func join(
    _ channel: Configuration.Channel, call: Bool = false
  ) async throws(MusterError) {
    await takeStoreTurn()
    defer { storeTurns.end() }
    try checkRoom()
    let found = try await ChannelOpening.read(channel, from: store)
    try found.check(beside: joined)
    if let unstored = found.unstored { try await store?.write([.channel(unstored)]) }
    try checkRoom()
    enter(found, call: call)
  }

  private func checkRoom() throws(MusterError) {
    guard !isStopping else { throw MusterError("the node is about to end", hint: "start another") }
    guard node.channelIDs.count < Limits.channels else {
      throw MusterError(
        "this node is in \(Limits.channels) channels", hint: "leave one with leave-channel")
    }
  }

  /// Waits until no other administration or joining is under way; `storeTurns.end` follows.
  func takeStoreTurn() async {
    await withCheckedContinuation { storeTurns.take($0) }
  }

  private var joined: [(id: ChannelID, name: String)] {
    node.channelIDs.map { ($0, node.name(of: $0) ?? "") }
  }

  func enter(_ opened: ChannelOpening.Result, call: Bool) {
    let id = opened.setup.id
    if opened.isPublic {
      emit(
        .warning(
          MusterError(
            "channel \(opened.setup.name) has no passphrase: anyone who knows its name can join "
              + "and listen", hint: "use a passphrase, or muster channel create")))
    }
    if let notice = opened.notice { emit(.warning(notice)) }
    trust[id] = TrustBook(opened.identities)
    ownRecords[id] = nil
    add(peers: opened.peers, rendezvous: opened.rendezvous, for: id)
    perform(node.join(opened.setup, call: call, at: now))
  }

  /// Leaves a channel gracefully; throws if the node is not in the channel.
  public func leave(channelNamed name: String) async throws(MusterError) {
    try await leaveChannel(try channel(named: name))
  }

  func leaveChannel(_ channel: ChannelID) async throws(MusterError) {
    perform(node.leave(channel, at: now))
    await sendLeave(to: [channel])
  }

  /// The maximum number of waits of 40 ms each (480 ms in total) for the acknowledgement of a
  /// leave.
  private static let leaveRounds = 12

  func sendLeave(to channels: [ChannelID]) async {
    for _ in 0..<Self.leaveRounds where !channels.allSatisfy({ node.isFlushed($0) }) {
      try? await Task.sleep(for: .milliseconds(40))
    }
    for channel in channels {
      finishLeaving(channel)
      trust[channel] = nil
      ownRecords[channel] = nil
      removeNames(of: channel)
    }
  }

  func joinChannel(_ command: Command.JoinChannel) async throws(MusterError) {
    if let text = command.invite {
      let invite: Invite
      do { invite = try Invite(url: text) } catch { throw MusterError(error) }
      if let name = command.channel, name != invite.name {
        throw MusterError(
          "the invite is to \(invite.name), not to \(name)", hint: "leave \"channel\" away",
          kind: .usage)
      }
      return try await join(
        Configuration.Channel(name: invite.name, source: .invite(invite)),
        call: command.call)
    }
    guard let name = command.channel else {
      throw MusterError("join which channel", hint: "add \"channel\" or \"invite\"", kind: .usage)
    }
    try ChannelName.checkReference(name)
    var source = Configuration.Channel.Source.storedOrPublic
    var weakness: MusterError?
    if let passphrase = command.passphrase {
      try ChannelName.check(name)
      // Key derivation takes tenths of a second by design and must not block the event loop.
      let key = await Task.detached { ChannelKey.fromPassphrase(passphrase, name: name) }.value
      guard !passphrase.isEmpty, let key else {
        throw MusterError("the passphrase cannot be used", hint: "give a longer one", kind: .usage)
      }
      source = .open(key)
      weakness = MusterError(weakPassphrase: passphrase, channel: name)
    }
    try await join(Configuration.Channel(name: name, source: source), call: command.call)
    if let weakness { emit(.warning(weakness)) }
  }
}

extension MusterError {
  /// Creates the error for an invite that cannot be parsed.
  public init(_ fault: InviteFault) {
    switch fault {
    case .notAnInvite:
      self.init(
        "that is no invite", hint: "an invite begins with muster://, as muster invite prints it",
        kind: .usage)
    case .damaged:
      self.init(
        "the invite is damaged", hint: "copy all of it again, or ask for a new one", kind: .usage)
    case .newerVersion:
      self.init(
        "the invite is from a newer version of muster", hint: "update this one", kind: .usage)
    }
  }
}
