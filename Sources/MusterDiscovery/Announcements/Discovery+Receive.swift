import MusterBase
import MusterCrypto
import MusterWire

extension Discovery {
  mutating func receiveAnnouncement(
    _ datagram: [UInt8], from source: Address, at now: Instant
  ) -> [Output] {
    guard let (index, plaintext) = open(datagram, from: source) else { return [] }
    let signed: SignedAnnouncement
    do { signed = try SignedAnnouncement(decoding: plaintext) } catch {
      counters.malformed += 1
      return []
    }
    let announcement = signed.announcement
    // A twin is asked like anybody else: its announcement may be one of an earlier run, recorded.
    guard announcement.author != identity.id || announcement.bootID != bootID else {
      counters.ownAnnouncement += 1
      return []
    }
    // The echo is checked before the signature, so that a replay costs no more than one decryption
    // and one MAC.
    let hasEcho = hasProof(announcement, channel: index, source: source, at: now)
    let evaluation = channels[index].proven.evaluation(
      of: announcement.author, bootID: announcement.bootID, counter: announcement.counter,
      at: source, hasEcho: hasEcho)
    guard evaluation != .replay else {
      counters.replayed += 1
      return []
    }
    // The budgets are asked before the signature is verified: a recorded announcement can be sent
    // again any number of times, from any source address.
    if evaluation == .unproven,
      !isWorthAsking(announcement, channel: index, source: source, at: now)
    {
      return []
    }
    let isKnown = hasEcho || channels[index].proven.contains(announcement.author)
    guard challenges.mayVerify(ofKnown: isKnown, at: now) else {
      counters.unverified += 1
      return []
    }
    guard signed.isGenuine(in: channels[index].id) else {
      counters.forged += 1
      return []
    }
    if evaluation == .accepted {
      return accept(announcement, channel: index, source: source, at: now)
    }
    return challenge(announcement, channel: index, source: source, at: now)
  }

  mutating func receiveChallenge(
    _ datagram: [UInt8], from source: Address, at now: Instant
  ) -> [Output] {
    guard let (index, plaintext) = open(datagram, from: source) else { return [] }
    let challenge: Challenge
    do { challenge = try Challenge(decoding: plaintext) } catch {
      counters.malformed += 1
      return []
    }
    guard challenge.target == identity.id, challenge.bootID == bootID else {
      counters.foreignChallenge += 1
      return []
    }
    let verdict = channels[index].answers.judge(
      counter: challenge.counter, echo: challenge.echo, at: now)
    switch verdict {
    case .notAsked: counters.foreignChallenge += 1
    case .repeated: counters.repeatedChallenge += 1
    case .answer:
      counters.answered += 1
      // The answer contains no addresses, so that it is hardly larger than the challenge (no
      // amplification).
      let answer = sealAnnouncement(in: index, echo: challenge.echo, addresses: [])
      return [.send(answer, to: source)]
    }
    return []
  }

  /// Finds the channel whose key decrypts the datagram, and returns the plaintext.
  private mutating func open(
    _ datagram: [UInt8], from source: Address
  ) -> (channel: Int, plaintext: [UInt8])? {
    for index in channels.indices {
      if let plaintext = DiscoveryDatagram.open(datagram, with: channels[index].key) {
        return (index, plaintext)
      }
    }
    counters.unreadable += 1
    surroundings.noteUnreadable(from: source)
    return nil
  }

  private mutating func hasProof(
    _ announcement: Announcement, channel index: Int, source: Address, at now: Instant
  ) -> Bool {
    let isValid = channels[index].echoSecret.isValid(
      announcement, in: channels[index].id, at: source, now: now)
    if announcement.echo != nil, !isValid { counters.badEcho += 1 }
    return isValid
  }

  private mutating func accept(
    _ announcement: Announcement, channel index: Int, source: Address, at now: Instant
  ) -> [Output] {
    let author = SessionLinkID(key: channels[index].id, peer: announcement.author)
    challenges.answered(author, bootID: announcement.bootID)
    candidateProber.answered(author)
    channels[index].proven.record(
      announcement.author, bootID: announcement.bootID, counter: announcement.counter, at: source,
      now: now)
    guard announcement.author != identity.id else {
      return [.twin(key: channels[index].id, at: source)]
    }
    counters.found += 1
    surroundings.found()
    return [
      .found(
        announcement.author, bootID: announcement.bootID, key: channels[index].id, at: source)
    ]
  }

  /// Whether a genuine announcement would be challenged; counts the reason why not.
  private mutating func isWorthAsking(
    _ announcement: Announcement, channel index: Int, source: Address, at now: Instant
  ) -> Bool {
    let author = SessionLinkID(key: channels[index].id, peer: announcement.author)
    let verdict = challenges.forecast(
      author, bootID: announcement.bootID, counter: announcement.counter, from: source, at: now)
    switch verdict {
    case .ask: return true
    case .alreadyAsked: counters.alreadyChallenged += 1
    case .overBudget: counters.overBudget += 1
    }
    return false
  }

  private mutating func challenge(
    _ announcement: Announcement, channel index: Int, source: Address, at now: Instant
  ) -> [Output] {
    let author = SessionLinkID(key: channels[index].id, peer: announcement.author)
    let verdict = challenges.judge(
      author, bootID: announcement.bootID, counter: announcement.counter, from: source, at: now)
    switch verdict {
    case .alreadyAsked: counters.alreadyChallenged += 1
    case .overBudget: counters.overBudget += 1
    case .ask:
      counters.challenged += 1
      if announcement.author != identity.id { surroundings.challenged(source) }
      return [
        .send(sealChallenge(about: announcement, channel: index, to: source, now), to: source)
      ]
    }
    return []
  }

  private mutating func sealChallenge(
    about announcement: Announcement, channel index: Int, to source: Address, _ now: Instant
  ) -> [UInt8] {
    let echo = channels[index].echoSecret.echo(
      for: announcement, in: channels[index].id, at: source, now: now)
    let challenge = Challenge(
      target: announcement.author, bootID: announcement.bootID, counter: announcement.counter,
      echo: echo)
    return DiscoveryDatagram.seal(
      challenge.encoded(), as: .challenge, with: channels[index].key, entropy: &entropy)
  }
}
