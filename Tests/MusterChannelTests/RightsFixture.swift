import MusterBase
import MusterChannel
import MusterCrypto
import MusterWire

/// Signs entries of a channel as one author, under any counter.
struct Pen {
  let identity: Identity
  let channel: ChannelID
  private var sequence: UInt64 = 0

  init(_ number: UInt64, in channel: ChannelID = testKey.channelID) {
    identity = testIdentity(number)
    self.channel = channel
  }

  var id: NodeID { identity.id }

  mutating func sign(_ body: EntryBody, lamport: UInt64) -> SignedEntry {
    sequence += 1
    return SignedEntry.sign(
      Entry(author: id, sequence: sequence, lamport: lamport, body: body),
      by: identity, in: channel)
  }

  mutating func claim(
    _ call: UInt64, term: UInt32 = 1, lamport: UInt64, startedAt: UInt64 = 0, order: UInt64 = 0,
    knowledge: CallClaim.Knowledge = .compared
  ) -> SignedEntry {
    let claim = CallClaim(
      call: callID(call), term: term, startedAt: startedAt, order: order, knowledge: knowledge)
    return sign(.claim(claim), lamport: lamport)
  }

  mutating func end(_ call: UInt64, term: UInt32 = 1, lamport: UInt64) -> SignedEntry {
    sign(.end(CallEnd(call: callID(call), term: term)), lamport: lamport)
  }

  mutating func joining(
    _ call: UInt64, _ stage: CallJoining.Stage, lamport: UInt64
  ) -> SignedEntry {
    sign(.joining(CallJoining(call: callID(call), stage: stage)), lamport: lamport)
  }

  mutating func moderation(
    _ call: UInt64, of member: NodeID, _ actions: Moderation.Actions, lamport: UInt64
  ) -> SignedEntry {
    let moderation = Moderation(call: callID(call), member: member, actions: actions)
    return sign(.moderation(moderation), lamport: lamport)
  }

  mutating func grant(
    _ role: Role, to subject: NodeID, expiresAt: UInt64 = 0, form: Grant.Form = .direct,
    lamport: UInt64
  ) -> SignedEntry {
    let grant = Grant(subject: subject, role: role, expiresAt: expiresAt, form: form)
    return sign(.grant(grant), lamport: lamport)
  }

  mutating func epoch(
    _ number: UInt32, after previous: SignedEntry? = nil, removing removed: [NodeID] = [],
    keeping kept: [UInt64] = [], lamport: UInt64
  ) -> SignedEntry {
    let change = EpochChange(
      number: number, keyID: otherKey.keyID, previous: previous?.id ?? .zero,
      removed: removed, kept: kept)
    return sign(.epoch(change), lamport: lamport)
  }

  mutating func redeem(
    _ grant: SignedEntry, with secret: Identity, lamport: UInt64
  ) -> SignedEntry {
    let redemption = Invites.redemption(of: grant.bytes, secret: secret, by: id, in: channel)
    return sign(.redemption(redemption), lamport: lamport)
  }
}

func callID(_ number: UInt64) -> CallID { CallID(high: 0, low: number) }

/// A created channel with its document and the rights that follow from it.
struct Club {
  var owner: Pen
  let genesis: SignedGenesis
  let secret = testIdentity(900)
  private(set) var document: Document
  private(set) var rights: Rights

  init(settings: ChannelSettings = ChannelSettings()) {
    let founder = testIdentity(100)
    genesis = SignedGenesis.sign(
      Genesis(
        owner: founder.id, nonce: [UInt8](repeating: 7, count: Genesis.nonceBytes),
        createdAt: 1000, settings: settings, name: "club"),
      by: founder)
    owner = Pen(100, in: genesis.channelID)
    document = Document(channel: genesis.channelID, exempt: founder.id)
    rights = Rights(channel: genesis.channelID, genesis: genesis)
    rights.update(from: document)
  }

  func pen(_ number: UInt64) -> Pen { Pen(number, in: genesis.channelID) }

  mutating func add(_ entries: SignedEntry...) { add(entries) }

  mutating func add(_ entries: [SignedEntry]) {
    for entry in entries { _ = document.insert(entry) }
    rights.update(from: document)
  }

  /// Removes the entries whose authors have no right to them; returns their number.
  @discardableResult
  mutating func settle() -> Int {
    let rights = rights
    let removed = document.settle(rights.admissions) { rights.holds($0.entry) }
    self.rights.update(from: document)
    return removed.count
  }

  /// An invite's grant, which is in no document until somebody redeems it.
  mutating func invite(
    _ role: Role = .presenter, expiresAt: UInt64 = 0, epoch: UInt32 = 0, uses: UInt32 = 0,
    roleExpiresAt: UInt64 = 0, lamport: UInt64
  ) -> SignedEntry {
    owner.grant(
      role, to: secret.id, expiresAt: expiresAt,
      form: .bearer(Grant.Terms(epoch: epoch, uses: uses, roleExpiresAt: roleExpiresAt)),
      lamport: lamport)
  }

  /// Signs and adds the owner's confirmations; returns the keys that are confirmed.
  @discardableResult
  mutating func confirmUses(
    meeting met: [NodeID] = [], at wallSeconds: UInt64 = 0, lamport: UInt64
  ) -> [NodeID] {
    let grants = rights.confirmations(by: owner.id, meeting: met, at: wallSeconds)
    add(grants.map { owner.sign(.grant($0), lamport: lamport) })
    return grants.map(\.subject)
  }

  func role(_ pen: Pen, at wallSeconds: UInt64 = 0) -> Role {
    rights.role(of: pen.id, at: wallSeconds)
  }

  func refusal(_ pen: Pen, at wallSeconds: UInt64 = 0) -> Refusal? {
    rights.refusal(of: pen.id, at: wallSeconds)
  }
}

extension PRNG {
  /// The same elements in a random order.
  mutating func permuted<Element>(_ elements: [Element]) -> [Element] {
    var result = elements
    for index in result.indices.dropFirst() { result.swapAt(index, below(index + 1)) }
    return result
  }
}
