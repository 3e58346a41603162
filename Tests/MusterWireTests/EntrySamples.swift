import MusterBase
import MusterWire

/// Entries of every kind, drawn from a seed.
extension Samples {
  mutating func entry() -> Entry {
    Entry(
      author: node(), sequence: u64(), lamport: u64() >> 2, body: body(random.below(11)))
  }

  mutating func body(_ kind: Int) -> EntryBody {
    switch kind {
    case 0: .presence(presence())
    case 1:
      .neighbourReport(
        NeighbourReport(
          bootID: u64(), heard: ids(64), suspected: ids(NeighbourReport.suspectedLimit)))
    case 2:
      .claim(
        CallClaim(
          call: call(), term: max(u32(), 1), startedAt: u64(), order: u64(),
          knowledge: bit() ? .compared : .none))
    case 3: .end(CallEnd(call: call(), term: u32()))
    case 4: .message(message())
    case 5: .grant(grant())
    case 6:
      .redemption(
        Redemption(
          grant: bytes(upTo: Redemption.grantEntryLimit),
          signature: random.bytes(Entry.signatureBytes)))
    case 7:
      .epoch(
        EpochChange(
          number: max(u32(), 1), keyID: KeyID(key()), previous: key(),
          removed: (0..<random.below(EpochChange.removedLimit + 1)).map { _ in node() },
          kept: ids(EpochChange.keptLimit)))
    case 8: .joining(CallJoining(call: call(), stage: bit() ? .met : .lasting))
    case 9:
      .moderation(
        Moderation(call: call(), member: node(), actions: Moderation.Actions(rawValue: u8())))
    default: .unknown(kind: 11 + u8() % 200, bytes(upTo: 300))
    }
  }

  mutating func presence() -> Presence {
    Presence(
      bootID: u64(), flags: MemberFlags(rawValue: u16() & 0x3BE), name: name(),
      call: bit() ? Participation(id: call(), joined: u64()) : nil,
      streams: StreamID.all.filter { _ in bit() }.map { offer(of: $0) })
  }

  mutating func offer(of stream: StreamID) -> StreamOffer {
    StreamOffer(
      stream, name: stream <= .screen ? nil : ["whiteboard", "b", "camera-2"][random.below(3)],
      isMuted: bit(), isPattern: bit(),
      layers: (0..<random.below(Limits.spatialLayers + 1)).map { _ in
        VideoLayer(
          size: VideoSize(width: Int(u16()), height: Int(u16())), framesPerSecond: Int(u8()))
      })
  }

  mutating func message() -> Message {
    let to = bit() ? node() : nil
    return Message(
      sentAt: u64(), after: ids(Message.predecessorLimit), to: to,
      content: bytes(upTo: Limits.textBytes + (to == nil ? 0 : Message.sealBytes)))
  }

  mutating func grant() -> Grant {
    Grant(
      subject: node(), role: Role(rawValue: u8() % 5) ?? .none, expiresAt: u64(),
      form: form())
  }

  private mutating func form() -> Grant.Form {
    switch u8() % 3 {
    case 0: .direct
    case 1: .byInvite(node())
    default: .bearer(Grant.Terms(epoch: u32(), uses: u32(), roleExpiresAt: u64()))
    }
  }

  mutating func genesis() -> Genesis {
    Genesis(
      owner: node(), nonce: random.bytes(Genesis.nonceBytes), createdAt: u64(),
      settings: ChannelSettings(callEndsWithInitiator: bit(), onlyPresentersSend: bit()),
      name: name())
  }

  mutating func invite() -> Invite {
    let isCreated = bit()
    return Invite(
      name: ["lab", "Öffentliche Runde", "a b/c?d#e%"][random.below(3)],
      genesis: isCreated ? bytes(upTo: Genesis.signedBytes) : nil, epoch: u32(),
      key: random.bytes(32), oneTimeSeed: isCreated ? random.bytes(32) : nil,
      grant: isCreated ? bytes(upTo: Redemption.grantEntryLimit) : nil,
      peers: (0..<random.below(Limits.inviteHints + 1)).map { "192.0.2.\($0):4711" },
      rendezvous: bit() ? ["[2001:db8::1]:4712"] : [])
  }
}
