import MusterBase
import MusterCrypto
import MusterWire

/// The entries that this node signs.
extension ChannelState {
  /// Enters the channel: signs the first presence of this process, and reports the messages that an
  /// earlier process received but did not show.
  public mutating func enter(at now: Instant) -> [Output] {
    commit(at: now) { state, out in
      state.signPresence(at: now, &out)
      for entry in state.undelivered { state.show(state.messages.insert(entry, at: now), &out) }
      state.undelivered = []
    }
  }

  /// Sets the flags about audio, video and relaying; the others are not affected.
  public mutating func setFlags(_ flags: MemberFlags, at now: Instant) -> [Output] {
    let kept = ownPresence.flags.intersection([.left, .handsOver])
    return commit(at: now) { state, _ in
      state.ownPresence.flags = flags.intersection(Self.settableFlags).union(kept)
    }
  }

  private static let settableFlags: MemberFlags = [
    .audioMuted, .videoMuted, .speaking, .sharing, .audio, .declinesRelaying, .relaysMuch,
  ]

  /// Sets the video streams that this node offers, at most `Limits.videoStreams`. They must be in
  /// ascending order and have valid names.
  public mutating func setStreams(_ streams: [StreamOffer], at now: Instant) -> [Output] {
    commit(at: now) { state, _ in
      state.ownPresence.streams = Array(streams.prefix(Limits.videoStreams))
    }
  }

  /// Joins the active call, or starts one as its initiator; does nothing in a call or without the
  /// right to do so, if it was removed from the call, or once it leaves the channel. `startedAt` is
  /// in milliseconds since 1970, for display only.
  public mutating func startOrJoinCall(
    proposing id: CallID, startedAt: UInt64, at now: Instant
  ) -> [Output] {
    guard ownPresence.call == nil, !isLeaving else { return [] }
    return commit(at: now) { state, out in
      if let call = state.call {
        guard state.isSelfAllowed(.joinCall),
          state.remover(of: state.identity.id, from: call.info.id) == nil
        else { return }
        state.participate(in: call.info.id)
      } else if state.isSelfAllowed(.startCall) {
        let claim = CallClaim(
          call: id, term: 1, startedAt: startedAt, order: 0,
          knowledge: state.comparedAt == nil ? .none : .compared)
        guard state.signAndBroadcast(.claim(claim), at: now, &out) else {
          out.append(.event(.notKept(.call)))
          return
        }
        state.participate(in: id)
      }
    }
  }

  private mutating func participate(in call: CallID) {
    ownPresence.call = Participation(id: call, joined: gossip.document.lamport)
    ownPresence.flags.remove(.handsOver)
  }

  /// Leaves the call; if this node is its initiator, ends the call for all or, if `handsOver` is
  /// set and there is a `successor`, leaves the call to it.
  public mutating func leaveCall(handsOver: Bool = false, at now: Instant) -> [Output] {
    commit(at: now) { state, out in
      guard handsOver, state.successor != nil else {
        state.dropCall(at: now, &out)
        return
      }
      state.ownPresence.call = nil
      state.ownPresence.flags.insert(.handsOver)
    }
  }

  /// Leaves the call and the channel. The host keeps the links until `isFlushed`, so that
  /// neighbours receive the entries of both steps.
  public mutating func leave(at now: Instant) -> [Output] {
    commit(at: now) { state, out in
      state.dropCall(at: now, &out)
      state.ownPresence.flags.insert(.left)
    }
  }

  private mutating func dropCall(at now: Instant, _ out: inout [Output]) {
    guard let mine = ownPresence.call else { return }
    ownPresence.call = nil
    guard let call, call.info.id == mine.id, call.info.initiator == identity.id else { return }
    let bodies = CallLedger.ending(
      call.info, by: identity.id, callEntries, may: { may($0, $1) })
    signAndCommit(bodies, as: .callEnd, &out)
    changes.call = true
  }

  /// Mutes a participant of the active call for everyone, or removes it from the call. The caller
  /// checks that this node may do so (`Rights.moderates`).
  public mutating func moderate(
    _ member: NodeID, _ actions: Moderation.Actions, at now: Instant
  ) -> [Output] {
    guard let call else { return [] }
    let moderation = Moderation(call: call.info.id, member: member, actions: actions)
    return commit(at: now) { state, out in
      guard !state.signAndBroadcast(.moderation(moderation), at: now, &out) else { return }
      out.append(.event(.notKept(.moderation)))
    }
  }

  // MARK: Text

  /// Sends a text message to all members or to one. The caller checks that the text is neither
  /// empty nor longer than `Limits.textBytes`.
  public mutating func say(_ text: String, to receiver: NodeID?, at now: Instant) -> [Output] {
    commit(at: now) { state, out in
      guard let content = state.content(text, to: receiver) else { return }
      let message = Message(
        sentAt: state.wallMilliseconds, after: state.messageHeads, to: receiver,
        content: content)
      state.signAndCommit([.message(message)], as: .message, &out)
    }
  }

  private mutating func content(_ text: String, to receiver: NodeID?) -> [UInt8]? {
    let bytes = Array(text.utf8)
    guard bytes.count <= Limits.textBytes else { return nil }
    guard let receiver else { return bytes }
    return DirectSeal.seal(
      bytes, from: identity, to: receiver, context: channel.hash.bytes, entropy: &entropy)
  }

  /// The text message in an entry, listed at `counter` (`MessageOrder`); nil for other entries, for
  /// messages between other members, and for content that does not decrypt or is not UTF-8.
  func text(of entry: SignedEntry, listedAt counter: UInt64) -> TextMessage? {
    guard case .message(let message) = entry.entry.body else { return nil }
    let author = entry.entry.author
    var content: [UInt8]? = message.content
    if let receiver = message.to {
      guard author == identity.id || receiver == identity.id else { return nil }
      content = DirectSeal.open(
        message.content, own: identity, other: author == identity.id ? receiver : author,
        from: author, context: channel.hash.bytes)
    }
    guard let content, let text = String(validating: content, as: UTF8.self) else { return nil }
    return TextMessage(
      id: entry.id, from: author, to: message.to, text: text, sentAt: message.sentAt,
      counter: counter)
  }

  // MARK: Rights

  /// Grants a member a role until `expiresAt` (seconds since 1970; 0 for no expiry); `none` revokes
  /// the member's role.
  public mutating func grant(
    _ role: Role, to member: NodeID, expiresAt: UInt64, at now: Instant
  ) -> [Output] {
    let grant = Grant(
      subject: member, role: role, expiresAt: expiresAt, form: rights.form(of: member))
    return commit(at: now) { state, out in state.signAndCommit([.grant(grant)], as: .role, &out) }
  }

  /// Takes the roles of members, and of all who came by invites, away; `removed` are their keys and
  /// the invites' one-time keys. For owners that cannot change the channel's key.
  public mutating func remove(_ removed: [NodeID], at now: Instant) -> [Output] {
    let invited = removed.flatMap { rights.uses[$0]?.confirmed ?? [] }
    let grants = (removed + invited).map { EntryBody.grant(rights.removal(of: $0)) }
    return commit(at: now) { state, out in state.signAndCommit(grants, as: .role, &out) }
  }

  /// Starts the owner's next key epoch: the removed members lose their roles and do not learn the
  /// key; the one-time key of an invite stands for all who came by it. This is one commit: after a
  /// removal without its key change, the removed members could still read the channel. Members
  /// whose roles have expired do not learn the key, either.
  public mutating func changeKey(
    to keyID: KeyID, removing removed: [NodeID], at now: Instant
  ) -> [Output] {
    let last = rights.epochs.last
    // Members that came by invites and are not confirmed would lose their roles with the old key.
    let confirmed = unconfirmedUses.filter { grant in
      !removed.contains(grant.subject) && !removed.contains { $0 == grant.invite }
    }
    // If nobody is removed, their roles do not depend on the grants.
    let kept =
      removed.isEmpty
      ? []
      : confirmed.map(\.subject) + rights.confirmedMembers(removing: removed, at: wallSeconds)
    let change = EpochChange(
      number: rights.currentEpoch &+ 1, keyID: keyID, previous: last?.id ?? .zero,
      removed: Array(removed.prefix(EpochChange.removedLimit)),
      kept: kept.prefix(EpochChange.keptLimit).map(\.key.prefix))
    let expired = rights.newlyExpiredMembers(at: wallSeconds).filter { !removed.contains($0) }
    let taken = removed.map { rights.removal(of: $0) } + rights.records(of: expired)
    return commit(at: now) { state, out in
      let bodies = (taken + confirmed).map { EntryBody.grant($0) } + [.epoch(change)]
      state.signAndCommit(bodies, as: .key, &out)
    }
  }

  /// A bearer grant for an invite that `uses` keys (0: any number) can redeem until `expiresAt`,
  /// for roles that end at `roleExpiresAt` (0: never), with the outputs that write and broadcast
  /// it.
  ///
  /// It is signed twice. The first entry is for the invite. The second enters the document, so that
  /// later grants get higher Lamport counters in every process of the owner, and so that members
  /// know of the invite.
  public mutating func bearerGrant(
    _ role: Role, for subject: NodeID, expiresAt: UInt64, uses: UInt32, roleExpiresAt: UInt64 = 0,
    at now: Instant
  ) -> (grant: SignedEntry, outputs: [Output]) {
    let terms = Grant.Terms(epoch: currentEpoch, uses: uses, roleExpiresAt: roleExpiresAt)
    let body = EntryBody.grant(
      Grant(subject: subject, role: role, expiresAt: expiresAt, form: .bearer(terms)))
    let grant = sign(body)
    let outputs = commit(at: now) { state, out in
      state.signAndCommit([body], as: .invite, &out)
    }
    return (grant, outputs)
  }

  /// The uses of this node's invites that it has not confirmed yet. They leave a quarter of this
  /// owner's grants for those that it gives directly, and for removals.
  private var unconfirmedUses: [Grant] {
    let waiting = pending.flatMap(\.entries).compactMap { SignedGrant($0)?.grant.subject }
    let met = neighbours.sorted { $0.value.contact < $1.value.contact }.map(\.key)
    let grants = rights.confirmations(by: identity.id, meeting: met, at: wallSeconds)
      .filter { !waiting.contains($0.subject) }
    guard !grants.isEmpty else { return [] }
    let limit = identity.id == owner ? Limits.grants : Limits.grantsPerAuthor
    let used = gossip.document.count(of: .grant, by: identity.id) + waiting.count
    return Array(grants.prefix(max(limit / 4 * 3 - used, 0)))
  }

  /// Schedules the confirmation of new uses of this node's invites.
  mutating func noteUses(at now: Instant) {
    guard confirmationDueAt == nil, !unconfirmedUses.isEmpty else { return }
    confirmationDueAt = now + Self.confirmationDelay
  }

  /// Confirms the uses of this node's invites that are not confirmed yet.
  mutating func confirmUses(at now: Instant, _ out: inout [Output]) {
    confirmationDueAt = isWaitingForDisk ? now + Self.confirmationDelay : nil
    guard !isWaitingForDisk else { return }
    signAndCommit(unconfirmedUses.map { .grant($0) }, as: .role, &out)
  }

  /// Schedules the change of the key that the owner makes because roles have expired.
  /// `changed`: the only keys whose rights have changed; nil if any may have.
  mutating func noteExpiredRoles(_ changed: [NodeID]?, at now: Instant) {
    guard identity.id == owner else { return }
    if let changed, keyChangeDueAt == nil,
      !changed.contains(where: { rights.isNewlyExpired($0, at: wallSeconds) })
    {
      return
    }
    guard !rights.newlyExpiredMembers(at: wallSeconds).isEmpty else {
      keyChangeDueAt = nil
      return
    }
    let earliest = keyChangeTriedAt.map { $0 + Self.keyChangeInterval }
    keyChangeDueAt = keyChangeDueAt ?? max(now + Self.keyChangeDelay, earliest ?? now)
  }

  /// Notes that the host changes the key because roles have expired, or cannot change it now.
  ///
  /// A member that was away for more than `Limits.formerKeys` changes needs a new invite: so roles
  /// that expire soon after others wait.
  public mutating func noteKeyChangeAttempt(at now: Instant) {
    keyChangeTriedAt = now
    if keyChangeDueAt != nil { keyChangeDueAt = now + Self.keyChangeInterval }
  }

  /// Notes that the host cannot change the key yet, since the disk is busy.
  public mutating func delayKeyChange(at now: Instant) {
    if keyChangeDueAt != nil { keyChangeDueAt = now + Self.keyChangeDelay }
  }

  /// The delay of a key change after roles have expired, of which there may be several at once.
  static let keyChangeDelay = Duration.milliseconds(500)
  /// The least time between two key changes because of expired roles.
  static let keyChangeInterval = Duration.seconds(3600)

  /// The delay of a confirmation: an owner that has been away should hear of all who came by an
  /// invite before it settles who stays.
  static let confirmationDelay = Duration.milliseconds(500)

  /// Signs and broadcasts the redemption of the invite that this node joined with.
  public mutating func redeem(
    grant: [UInt8], secret: Identity, at now: Instant
  ) -> [Output] {
    let redemption = Invites.redemption(
      of: grant, secret: secret, by: identity.id, in: channel)
    return commit(at: now) { state, out in
      state.signAndBroadcast(.redemption(redemption), at: now, &out)
    }
  }

  // MARK: Signing

  mutating func sign(_ body: EntryBody) -> SignedEntry {
    sequence &+= 1
    // An earlier process may have used counters further ahead than one entry may raise the clock
    // (`Document.lamportStep`); new entries must still be newer.
    var known = max(
      gossip.document.lamport, gossip.document.newestLamport(of: identity.id))
    // Entries that wait for the disk are not in the document yet.
    known = max(known, signedLamport)
    // The grant of a redeemed invite may be missing from the document; a later direct grant must
    // still be newer.
    if case .grant(let grant) = body, !grant.isBearer {
      known = max(known, rights.newestGrantLamport(for: grant.subject))
    }
    // Nor may this node have received its removal, which is older than the grant that it came back
    // by: messages from before it are not kept.
    if case .message = body { known = max(known, rights.newestGrantLamport(for: identity.id)) }
    let lamport = min(known &+ 1, Entry.lamportLimit)
    signedLamport = lamport
    return SignedEntry.sign(
      Entry(author: identity.id, sequence: sequence, lamport: lamport, body: body),
      by: identity, in: channel)
  }

  /// Signs an entry and broadcasts it without waiting for the disk; returns whether the document
  /// keeps it.
  @discardableResult
  mutating func signAndBroadcast(
    _ body: EntryBody, at now: Instant, _ out: inout [Output]
  ) -> Bool {
    broadcast(sign(body), at: now, &out)
  }

  /// Broadcasts an entry of this node; returns whether the document keeps it. `isWritten`: the
  /// entry is already on disk.
  @discardableResult
  mutating func broadcast(
    _ entry: SignedEntry, isWritten: Bool = false, at now: Instant, _ out: inout [Output]
  ) -> Bool {
    let outputs = gossip.broadcast(entry, at: now)
    apply(outputs, isWritten: isWritten, at: now, &out)
    return outputs.contains { output in
      if case .inserted(entry, _) = output { true } else { false }
    }
  }

  /// The presence that this node publishes. The speaking flag is cleared outside a call and without
  /// the right to send audio, whatever the microphone picks up.
  var presenceToPublish: Presence {
    var presence = ownPresence
    if ownPresence.call == nil || !isSelfAllowed(.sendAudio) { presence.flags.remove(.speaking) }
    return presence
  }

  /// Signs and broadcasts a new presence.
  mutating func signPresence(at now: Instant, _ out: inout [Output]) {
    presenceDueAt = nil
    presenceSentAt = now
    let entry = sign(.presence(presenceToPublish))
    ownEntry = entry
    broadcast(entry, at: now, &out)
    if isDisplaced(entry) { presenceDueAt = now + Self.displacedInterval }
  }

  /// Signs and broadcasts a new neighbour report.
  mutating func publishReport(at now: Instant, _ out: inout [Output]) {
    reportDueAt = nil
    // A neighbour whose presence is of an earlier run has restarted. Others would take the report
    // for one about that run, and see it come back.
    let heard = neighbours.keys.filter(isInSameRun)
    let neighbourReport = NeighbourReport(
      bootID: ownPresence.bootID, heard: heard.map(\.key.prefix),
      suspected: detector.suspected.map(\.key.prefix))
    let entry = sign(.neighbourReport(neighbourReport))
    ownReport = entry
    broadcast(entry, at: now, &out)
  }

  /// Whether the document lacks an entry that this node has published, because others have
  /// displaced it. Without its presence a member seems to have left, so it publishes the presence
  /// again, though at most once per `displacedInterval`.
  func isDisplaced(_ entry: SignedEntry) -> Bool {
    guard let kind = entry.entry.body.kind else { return false }
    return gossip.document.newest(kind, of: identity.id) == nil
      && !gossip.document.quarantined.contains(identity.id)
  }

  static let displacedInterval = Duration.seconds(1)
}
