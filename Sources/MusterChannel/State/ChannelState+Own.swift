import MusterBase
import MusterCrypto
import MusterWire

/// What this node itself says in the channel.
extension ChannelState {
  /// Enters the channel: says that this node is here.
  public mutating func enter(at now: Instant) -> [Output] {
    commit(at: now) { state, out in
      state.signPresence(at: now, &out)
      for entry in state.unshown { state.show(state.messages.insert(entry, at: now), &out) }
      state.unshown = []
    }
  }

  /// Sets what this node tells of its sound and picture; the flags of the channel stay.
  public mutating func setFlags(_ flags: MemberFlags, at now: Instant) -> [Output] {
    let kept = own.flags.intersection(.left)
    return commit(at: now) { state, _ in
      state.own.flags = flags.intersection(Self.settableFlags).union(kept)
    }
  }

  private static let settableFlags: MemberFlags = [
    .audioMuted, .videoMuted, .speaking, .sharing, .audio, .declinesRelaying, .relaysMuch,
  ]

  /// Sets the video streams that this node offers, in rising order and with valid names.
  public mutating func setStreams(_ streams: [StreamOffer], at now: Instant) -> [Output] {
    commit(at: now) { state, _ in
      state.own.streams = Array(streams.prefix(Limits.videoStreams))
    }
  }

  /// Joins the active call, or starts one as its initiator when there is none; nothing happens
  /// without the right to.
  public mutating func startOrJoinCall(
    proposing id: CallID, startedAt: UInt64, at now: Instant
  ) -> [Output] {
    guard own.call == nil else { return [] }
    return commit(at: now) { state, out in
      if let call = state.call {
        guard state.mayItself(.joinCall) else { return }
        state.own.call = Participation(id: call.info.id, joined: state.gossip.document.lamport)
      } else if state.mayItself(.startCall) {
        let claim = CallClaim(call: id, term: 1, startedAt: startedAt, order: 0)
        state.signAndBroadcast(.claim(claim), at: now, &out)
        state.own.call = Participation(id: id, joined: state.gossip.document.lamport)
      }
    }
  }

  /// Leaves the call; when this node is its initiator, the call is over for all.
  public mutating func leaveCall(at now: Instant) -> [Output] {
    commit(at: now) { state, out in state.dropCall(at: now, &out) }
  }

  /// Leaves the call and the channel: the last word, sent until every neighbour has it.
  public mutating func leave(at now: Instant) -> [Output] {
    commit(at: now) { state, out in
      state.dropCall(at: now, &out)
      state.own.flags.insert(.left)
    }
  }

  private mutating func dropCall(at now: Instant, _ out: inout [Output]) {
    guard let mine = own.call else { return }
    own.call = nil
    guard let call, call.info.id == mine.id, call.info.initiator == identity.id else { return }
    let words = CallLedger.ending(
      call.info, by: identity.id, claims: gossip.document.all(.claim),
      ends: gossip.document.all(.end), may: { may($0, $1) })
    for word in words { signAndBroadcast(word, at: now, &out) }
    if let id = lastPublished { lastWords = (lastWords + [id]).suffix(4) }
  }

  // MARK: Text

  /// Writes to everyone, or to one member; the text must not be empty nor longer than
  /// `Limits.textBytes`, which the caller checks.
  public mutating func say(_ text: String, to receiver: NodeID?, at now: Instant) -> [Output] {
    commit(at: now) { state, out in
      guard let content = state.content(text, to: receiver) else { return }
      let message = Message(
        sentAt: state.wallMilliseconds, after: state.messages.heads, to: receiver,
        content: content)
      state.signAndBroadcast(.message(message), at: now, &out)
    }
  }

  private mutating func content(_ text: String, to receiver: NodeID?) -> [UInt8]? {
    let bytes = Array(text.utf8)
    guard bytes.count <= Limits.textBytes else { return nil }
    guard let receiver else { return bytes }
    return DirectSeal.seal(
      bytes, from: identity, to: receiver, context: channel.key.bytes, entropy: &entropy)
  }

  /// The text that an entry carries; nil when it is no message, or one for somebody else.
  func text(of entry: SignedEntry) -> TextMessage? {
    guard case .message(let message) = entry.entry.body else { return nil }
    let author = entry.entry.author
    var content: [UInt8]? = message.content
    if let receiver = message.to {
      guard author == identity.id || receiver == identity.id else { return nil }
      content = DirectSeal.open(
        message.content, own: identity, other: author == identity.id ? receiver : author,
        from: author, context: channel.key.bytes)
    }
    guard let content, let text = String(validating: content, as: UTF8.self) else { return nil }
    return TextMessage(
      id: entry.id, from: author, to: message.to, text: text, sentAt: message.sentAt,
      lamport: entry.entry.lamport)
  }

  // MARK: Rights

  /// Gives a member a role until `expiresAt` (seconds since 1970; 0 for good), `none` takes it
  /// away.
  public mutating func grant(
    _ role: Role, to member: NodeID, expiresAt: UInt64, at now: Instant
  ) -> [Output] {
    let grant = Grant(
      subject: member, role: role, expiresAt: expiresAt, epoch: 0, isBearer: false)
    return commit(at: now) { state, out in state.signAndBroadcast(.grant(grant), at: now, &out) }
  }

  /// The owner's next key epoch, under which those removed know nothing any more.
  public mutating func changeKey(
    to keyID: KeyID, removing removed: [NodeID], at now: Instant
  ) -> [Output] {
    let last = rights.epochs.last
    // Who came by an invite of the key before would be a stranger under the next one.
    let kept = rights.grantsBeforeKeyChange(removing: removed, at: wallSeconds)
    let change = EpochChange(
      number: rights.currentEpoch &+ 1, keyID: keyID, previous: last?.id ?? .zero,
      removed: Array(removed.prefix(EpochChange.removedLimit)),
      kept: kept.prefix(EpochChange.keptLimit).map(\.subject.key.prefix))
    return commit(at: now) { state, out in
      for grant in kept { state.signAndBroadcast(.grant(grant), at: now, &out) }
      state.signAndBroadcast(.epoch(change), at: now, &out)
    }
  }

  /// A bearer grant for an invite. It is told like any other, so that what is granted later comes
  /// later, whichever process of the owner does it.
  public mutating func bearerGrant(
    _ role: Role, for subject: NodeID, expiresAt: UInt64, at now: Instant
  ) -> (grant: SignedEntry, outputs: [Output]) {
    let grant = sign(
      .grant(
        Grant(
          subject: subject, role: role, expiresAt: expiresAt, epoch: currentEpoch, isBearer: true)))
    let outputs = commit(at: now) { state, out in
      state.apply(state.gossip.broadcast(grant, at: now), at: now, &out)
    }
    return (grant, outputs)
  }

  /// Shows the invite that this node came with.
  public mutating func redeem(
    grant: [UInt8], secret: Identity, at now: Instant
  ) -> [Output] {
    let redemption = Invites.redemption(
      of: grant, secret: secret, by: identity.id, in: channel)
    return commit(at: now) { state, out in
      state.signAndBroadcast(.redemption(redemption), at: now, &out)
    }
  }

  func mayItself(_ capability: Capability) -> Bool {
    ignoresOwnRole || may(capability, identity.id)
  }

  // MARK: Signing

  private mutating func sign(_ body: EntryBody) -> SignedEntry {
    sequence &+= 1
    // This node's own word of an earlier process may lie further ahead than one entry may raise
    // the counter (`Document.lamportStep`): what it says now must count nonetheless.
    var known = max(
      gossip.document.lamport, gossip.document.newestLamport(of: identity.id))
    // An invite's grant is in nobody's document by itself; what is granted after it comes after it.
    if case .grant(let grant) = body, !grant.isBearer {
      known = max(known, rights.newestWord(about: grant.subject))
    }
    let lamport = min(known &+ 1, Entry.lamportLimit)
    return SignedEntry.sign(
      Entry(author: identity.id, sequence: sequence, lamport: lamport, body: body),
      by: identity, in: channel)
  }

  /// Says something new.
  mutating func signAndBroadcast(_ body: EntryBody, at now: Instant, _ out: inout [Output]) {
    let entry = sign(body)
    lastPublished = entry.id
    apply(gossip.broadcast(entry, at: now), at: now, &out)
  }

  /// Says anew what this node is.
  mutating func signPresence(at now: Instant, _ out: inout [Output]) {
    presenceDueAt = nil
    presenceSentAt = now
    let entry = sign(.presence(own))
    ownEntry = entry
    apply(gossip.broadcast(entry, at: now), at: now, &out)
  }

  /// Says anew whom this node hears.
  mutating func publishReport(at now: Instant, _ out: inout [Output]) {
    reportDueAt = nil
    let neighbourReport = NeighbourReport(
      bootID: own.bootID, heard: neighbours.keys.map(\.key.prefix),
      suspected: detector.suspected.map(\.key.prefix))
    let entry = sign(.neighbourReport(neighbourReport))
    ownReport = entry.id
    apply(gossip.broadcast(entry, at: now), at: now, &out)
  }
}
