import MusterBase
import MusterWire
import Testing

private let rounds = 3_000

@Test func entriesComeBackAsTheyWere() throws {
  var samples = Samples(seed: 31)
  for _ in 0..<rounds {
    let entry = samples.entry()
    let bytes = entry.encoded()
    #expect(try Entry(decoding: bytes) == entry)
    #expect(bytes.count + Entry.signatureBytes <= Limits.entryBytes)
  }
}

/// The largest entry of every kind fits into one datagram, with its signature and framing.
@Test func theLargestEntriesFitIntoADatagram() {
  let key = Bytes32.zero
  let bodies: [EntryBody] = [
    .neighbourReport(
      NeighbourReport(
        bootID: 1, heard: Array(repeating: 1, count: Limits.peersPerChannel),
        suspected: Array(repeating: 1, count: NeighbourReport.suspectedLimit))),
    .message(
      Message(
        sentAt: 1, after: [1, 2, 3, 4], to: NodeID(key),
        content: Array(repeating: 1, count: Limits.textBytes + Message.sealBytes))),
    .epoch(
      EpochChange(
        number: 1, keyID: KeyID(key), previous: key,
        removed: Array(repeating: NodeID(key), count: EpochChange.removedLimit),
        kept: Array(repeating: 1, count: EpochChange.keptLimit))),
  ]
  for body in bodies {
    let entry = Entry(author: NodeID(key), sequence: 1, lamport: 1, body: body)
    let signed = entry.encoded() + [UInt8](repeating: 0, count: Entry.signatureBytes)
    #expect(signed.count <= Limits.entryBytes)
    // The link adds a header of 13 bytes and a tag of 16.
    #expect(Control.encode([.entry(signed)]).count + 13 + 16 <= Limits.datagramBytes)
  }
}

@Test func fieldsOfLaterVersionsAreLeftAlone() throws {
  var samples = Samples(seed: 32)
  for kind in 0..<9 {
    let entry = Entry(author: samples.node(), sequence: 1, lamport: 2, body: samples.body(kind))
    #expect(try Entry(decoding: entry.encoded() + [1, 2, 3]) == entry)
  }
}

@Test func everyEntryCutShortIsRefusedOrUnknown() {
  var samples = Samples(seed: 33)
  for kind in 0..<9 {
    let entry = Entry(author: samples.node(), sequence: 1, lamport: 2, body: samples.body(kind))
    let bytes = entry.encoded()
    // The last byte of a claim is optional.
    let shortest = entry.body.kind == .claim ? bytes.count - 1 : bytes.count
    for length in 0..<shortest {
      #expect(throws: WireError.self) { try Entry(decoding: bytes.prefix(length)) }
    }
  }
}

@Test func aClaimWithoutKnowledgeWasMadeInIgnorance() throws {
  let claim = CallClaim(
    call: CallID(high: 1, low: 2), term: 1, startedAt: 3, order: 0, knowledge: .compared)
  let entry = Entry(author: NodeID(.zero), sequence: 1, lamport: 2, body: .claim(claim))
  guard case .claim(let read) = try Entry(decoding: entry.encoded().dropLast()).body else {
    Issue.record("not a claim")
    return
  }
  #expect(read.call == claim.call && read.term == claim.term && read.startedAt == claim.startedAt)
  #expect(read.knowledge == .none)
}

@Test func aLamportCounterBeyondItsLimitIsRefused() {
  let entry = Entry(
    author: NodeID(.zero), sequence: 1, lamport: Entry.lamportLimit + 1,
    body: .end(CallEnd(call: CallID(high: 1, low: 2), term: 1)))
  #expect(throws: WireError.invalidValue) { try Entry(decoding: entry.encoded()) }
}

@Test func genesesComeBackAsTheyWere() throws {
  var samples = Samples(seed: 34)
  for _ in 0..<rounds {
    let genesis = samples.genesis()
    #expect(try Genesis(decoding: genesis.encoded()) == genesis)
  }
}

@Test func invitesComeBackAsTheyWere() throws {
  var samples = Samples(seed: 35)
  for _ in 0..<500 {
    let invite = samples.invite()
    #expect(try Invite(url: invite.url) == invite)
    #expect(try Invite(url: "  \(invite.url)\n") == invite)
    #expect(invite.url.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F })
  }
}

@Test func otherTextsAreNoInvites() {
  var samples = Samples(seed: 36)
  let url = samples.invite().url
  for text in ["", "lab", "http://lab/#AA", "muster:/lab", url + " " + url] {
    #expect(throws: InviteFault.notAnInvite) { try Invite(url: text) }
  }
}

@Test func aDamagedInviteIsSaidToBeDamaged() {
  var samples = Samples(seed: 37)
  for _ in 0..<200 {
    let url = samples.invite().url
    let cut = url.prefix(url.count - 1 - samples.random.below(20))
    #expect(throws: InviteFault.damaged) { try Invite(url: String(cut)) }
  }
  #expect(throws: InviteFault.damaged) { try Invite(url: "muster://lab/") }
  #expect(throws: InviteFault.damaged) { try Invite(url: "muster://lab/#====") }
}
