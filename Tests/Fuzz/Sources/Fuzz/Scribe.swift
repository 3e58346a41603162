import MusterBase
import MusterChannel
import MusterCrypto
import MusterWire

/// The nodes and channel that the mesh targets use.
enum Cast {
  static let key = ChannelKey.fromName("fuzz")
  static let own = identity(1)
  static let other = identity(2)
  static let third = identity(3)
  static let owner = identity(4)
  static let newcomer = identity(5)
  /// The one-time key of every invite.
  static let oneTime = identity(6)

  static let genesis = SignedGenesis.sign(
    Genesis(
      owner: owner.id, nonce: [UInt8](repeating: 7, count: Genesis.nonceBytes), createdAt: 0,
      settings: ChannelSettings(), name: "fuzz"),
    by: owner)

  private static func identity(_ seed: UInt8) -> Identity {
    guard let identity = Identity(seed: [UInt8](repeating: seed, count: 32)) else {
      fatalError("32 bytes are a seed")
    }
    return identity
  }
}

/// Writes entries with valid signatures, controlled by the input.
///
/// Authors, calls and numbers are few, so that entries interact: two under one sequence number,
/// claims and ends of one call, ids of what was written before.
struct Scribe {
  let channel: ChannelID
  let authors: [Identity]
  private(set) var written: [SignedEntry] = []

  /// Fewer than the dropped entries that a document remembers: up to there its result is the
  /// same for every order.
  static let limit = 200

  init(channel: ChannelID, authors: [Identity]) {
    self.channel = channel
    self.authors = authors
  }

  /// A new entry, or an earlier one again.
  mutating func entry(_ program: inout Program) -> SignedEntry {
    let author = authors[program.below(authors.count)]
    let sequence = UInt64(program.u8())
    let lamport = UInt64(program.u16())
    let body = body(&program, by: author)
    if written.count >= Self.limit { return written[program.below(Self.limit)] }
    let entry = SignedEntry.sign(
      Entry(author: author.id, sequence: sequence, lamport: lamport, body: body), by: author,
      in: channel)
    written.append(entry)
    return entry
  }

  /// The id prefix of an entry that may have been written.
  func prefix(_ program: inout Program) -> UInt64 {
    let number = program.u8()
    return written.isEmpty ? UInt64(number) : written[Int(number) % written.count].id.prefix
  }

  private func body(_ program: inout Program, by author: Identity) -> EntryBody {
    switch program.u8() % 11 {
    case 0: .presence(presence(&program))
    case 1:
      .neighbourReport(
        NeighbourReport(
          bootID: UInt64(program.u8() & 3), heard: members(&program).map(\.key.prefix).sorted(),
          suspected: members(&program).map(\.key.prefix)))
    case 2:
      .claim(
        CallClaim(
          call: call(&program), term: max(UInt32(program.u8()), 1),
          startedAt: UInt64(program.u8()), order: UInt64(program.u8()),
          knowledge: program.u8() & 1 == 0 ? .none : .compared))
    case 3: .end(CallEnd(call: call(&program), term: UInt32(program.u8())))
    case 4: .message(message(&program, by: author))
    case 5: .grant(grant(&program))
    case 6: .redemption(redemption(&program, by: author))
    case 7: .epoch(epoch(&program))
    case 8:
      .joining(
        CallJoining(
          call: call(&program), stage: program.u8() & 1 == 0 ? .met : .lasting))
    case 9:
      .moderation(
        Moderation(
          call: call(&program), member: member(&program),
          actions: Moderation.Actions(rawValue: program.u8())))
    default: .unknown(kind: 11 + program.u8() % 200, program.bytes())
    }
  }

  private func presence(_ program: inout Program) -> Presence {
    let name = String(
      validating: Array(program.bytes().prefix(Limits.nameBytes)), as: UTF8.self)
    return Presence(
      bootID: UInt64(program.u8() & 3), flags: MemberFlags(rawValue: program.u16()),
      name: name ?? "ada",
      call: program.bit()
        ? Participation(id: call(&program), joined: UInt64(program.u8())) : nil,
      streams: StreamID.all.filter { _ in program.bit() }.map { stream(&program, $0) })
  }

  private func stream(_ program: inout Program, _ id: StreamID) -> StreamOffer {
    let layers = (0..<program.below(Limits.spatialLayers + 1)).map { _ in
      VideoLayer(
        size: VideoSize(width: Int(program.u8()), height: Int(program.u8())),
        framesPerSecond: Int(program.u8()))
    }
    return StreamOffer(id, isMuted: program.bit(), isPattern: program.bit(), layers: layers)
  }

  private func message(_ program: inout Program, by author: Identity) -> Message {
    let after = (0..<program.below(Message.predecessorLimit + 1)).map { _ in prefix(&program) }
    let to = program.bit() ? member(&program) : nil
    var content = program.bytes()
    if let to, program.bit() {
      var entropy = Entropy.seeded(UInt64(program.u8()))
      content =
        DirectSeal.seal(
          content, from: author, to: to, context: channel.hash.bytes, entropy: &entropy) ?? []
    }
    return Message(sentAt: program.u64(), after: after, to: to, content: content)
  }

  private func grant(_ program: inout Program) -> Grant {
    Grant(
      subject: program.bit() ? Cast.oneTime.id : member(&program),
      role: Role(rawValue: program.u8() % 5) ?? .none, expiresAt: UInt64(program.u16()),
      form: form(&program))
  }

  private func form(_ program: inout Program) -> Grant.Form {
    switch program.u8() % 3 {
    case 0: .direct
    case 1: .byInvite(Cast.oneTime.id)
    default:
      .bearer(
        Grant.Terms(
          epoch: UInt32(program.u8() & 3), uses: UInt32(program.u8() & 3),
          roleExpiresAt: UInt64(program.u16())))
    }
  }

  /// A redemption of any entry, a bearer grant or not, or of junk.
  private func redemption(_ program: inout Program, by author: Identity) -> Redemption {
    let index = Int(program.u8())
    let grant = written.isEmpty ? program.bytes() : written[index % written.count].bytes
    return Invites.redemption(of: grant, secret: Cast.oneTime, by: author.id, in: channel)
  }

  private func epoch(_ program: inout Program) -> EpochChange {
    let index = Int(program.u8())
    let follows = program.bit() && !written.isEmpty
    return EpochChange(
      number: max(UInt32(program.u8() & 7), 1), keyID: KeyID(channel.hash),
      previous: follows ? written[index % written.count].id : .zero,
      removed: Array(members(&program).prefix(EpochChange.removedLimit)),
      kept: members(&program).map(\.key.prefix))
  }

  private func call(_ program: inout Program) -> CallID {
    CallID(high: UInt64(program.u8() & 3), low: 0)
  }

  private static let everyone = [
    Cast.own.id, Cast.other.id, Cast.third.id, Cast.owner.id, Cast.newcomer.id,
  ]

  private func member(_ program: inout Program) -> NodeID {
    Self.everyone[program.below(Self.everyone.count)]
  }

  /// The elements whose bits are set.
  private func members(_ program: inout Program) -> [NodeID] {
    let bits = program.u8()
    return Self.everyone.indices.filter { bits >> UInt8($0) & 1 == 1 }.map { Self.everyone[$0] }
  }
}
