import MusterBase
import MusterChannel
import MusterCrypto
import MusterWire

/// Entries that every receiver must take, and entries that it must refuse (section 9).
let wellFormedCases = CaseTopic(
  name: "well-formed", section: 9,
  description: "Whether a receiver takes an entry, by its form; all are signed by Anna in lab.",
  cases: taken + refused
) { inputs in
  let channel = try Cast().channelID
  return .flag((try? SignedEntry.verified(inputs.bytes("entry"), in: channel)) != nil)
}

private let taken: [Case] = [
  entry("unknown-empty", "An unknown kind without a body: 113 bytes.", 200, [], isTaken: true),
  entry(
    "unknown-longest", "An unknown kind of 1,080 bytes.", 200, zeros(967), isTaken: true),
  entry(
    "kind-0", "Kind 0 is an unknown one as well.", 0, zeros(3), isTaken: true),
  entry(
    "lamport-highest", "The highest Lamport counter, 2^62.", 200, [], lamport: 1 << 62,
    isTaken: true),
  entry(
    "further-fields", "Bytes after the last field.", 9, call + [1] + zeros(5), isTaken: true),
  entry("claim-short", "A claim without \"compared\".", 3, claim(term: 1), isTaken: true),
  entry("claim-compared-2", "A claim with \"compared\" 2.", 3, claim(term: 1) + [2], isTaken: true),
  entry("end-term-0", "An end of term 0, which ends nothing.", 4, call + zeros(4), isTaken: true),
  entry(
    "report-falling", "A neighbour report whose ids fall and repeat.", 2,
    boot + ids([9, 3, 3]) + ids([3]), isTaken: true),
  entry(
    "message-longest", "A message of 768 bytes to everyone.", 5, message(768), isTaken: true),
  entry(
    "message-not-utf8", "A message that is no UTF-8: kept, and not shown.", 5,
    zeros(8) + [0, 0] + bigEndian(UInt16(2)) + [0xC3, 0x28], isTaken: true),
  entry(
    "message-sealed-longest", "A message of 808 bytes to one member.", 5,
    message(808, to: zeros(32)),
    isTaken: true),
  entry(
    "grant-flags-4", "A grant with flags 4: bits 0 and 1 count.", 6, grant(flags: 4),
    isTaken: true),
  entry(
    "grant-flags-3", "A grant with both flags: bit 0 counts.", 6, grant(flags: 3) + zeros(12),
    isTaken: true),
  entry(
    "redemption-of-nothing", "A redemption of no bytes.", 7, bigEndian(UInt16(0)) + zeros(64),
    isTaken: true),
  entry(
    "redemption-of-anything", "A redemption of 256 bytes that are no grant.", 7,
    bigEndian(UInt16(256)) + zeros(256 + 64), isTaken: true),
  entry(
    "presence-flags", "A presence with all flags but 15.", 1,
    boot + [0x7F, 0xFF] + name(4) + [0], isTaken: true),
  entry(
    "presence-zero-layer", "A presence with a layer of no width.", 1,
    presence([stream(0, name(6), [[0, 0, 0, 180, 30]])]), isTaken: true),
  entry(
    "presence-equal-names", "A presence with two streams of one name.", 1,
    presence([stream(2, name(6), []), stream(3, name(6), [])]), isTaken: true),
  entry(
    "epoch-longest", "An epoch with 4 removed and 96 kept members.", 8,
    epoch(removed: 4, kept: 96), isTaken: true),
]

private let refused: [Case] = [
  entry("too-long", "1,081 bytes.", 200, zeros(968), isTaken: false),
  entry(
    "lamport-above", "A Lamport counter of 2^62 + 1.", 200, [], lamport: 1 << 62 + 1, isTaken: false
  ),
  entry(
    "cut-short", "A claim without the last byte of its order.", 3, claim(term: 1).dropLast(),
    isTaken: false),
  entry("claim-term-0", "A claim to term 0.", 3, claim(term: 0) + [1], isTaken: false),
  entry("joining-stage-0", "A joining of stage 0.", 9, call + [0], isTaken: false),
  entry("joining-stage-3", "A joining of stage 3.", 9, call + [3], isTaken: false),
  entry(
    "report-65", "A report of 65 neighbours.", 2, boot + ids(Array(0..<65)) + ids([]),
    isTaken: false),
  entry(
    "report-33-suspected", "A report of 33 suspected neighbours.", 2,
    boot + ids([]) + ids(Array(0..<33)), isTaken: false),
  entry("message-769", "A message of 769 bytes to everyone.", 5, message(769), isTaken: false),
  entry(
    "message-sealed-809", "A message of 809 bytes to one member.", 5, message(809, to: zeros(32)),
    isTaken: false),
  entry(
    "message-5-predecessors", "A message with five predecessors.", 5,
    zeros(8) + ids(Array(0..<5)) + [0] + zeros(2), isTaken: false),
  entry(
    "message-receiver-2", "A message with receiver flag 2.", 5, zeros(8) + [0, 2] + zeros(34),
    isTaken: false),
  entry("grant-role-5", "A grant of role 5.", 6, grant(role: 5), isTaken: false),
  entry(
    "grant-for-bearers-short", "A grant for bearers without the expiry of the role.", 6,
    grant(flags: 1) + zeros(4), isTaken: false),
  entry(
    "grant-by-invite-short", "A grant by invite without the invite.", 6, grant(flags: 2),
    isTaken: false),
  entry(
    "redemption-257", "A redemption of 257 bytes.", 7, bigEndian(UInt16(257)) + zeros(257 + 64),
    isTaken: false),
  entry(
    "presence-name-65", "A name of 65 bytes.", 1, boot + zeros(2) + name(65) + [0], isTaken: false),
  entry(
    "presence-name-not-utf8", "A name that is no UTF-8.", 1,
    boot + zeros(2) + [2, 0xC3, 0x28] + [0], isTaken: false),
  entry(
    "presence-5-streams", "Five streams.", 1,
    presence((0..<5).map { stream($0, name(6), []) }), isTaken: false),
  entry(
    "presence-stream-4", "Stream number 4.", 1, presence([stream(4, name(6), [])]),
    isTaken: false),
  entry(
    "presence-falling-streams", "Streams whose numbers do not rise.", 1,
    presence([stream(1, name(6), []), stream(1, name(5), [])]), isTaken: false),
  entry(
    "presence-unnamed-stream", "A stream without a name.", 1, presence([stream(0, name(0), [])]),
    isTaken: false),
  entry(
    "presence-stream-name-17", "A stream's name of 17 bytes.", 1,
    presence([stream(0, name(17), [])]), isTaken: false),
  entry(
    "presence-stream-name-A", "A stream's name with a capital letter.", 1,
    presence([stream(0, [1, 0x41], [])]), isTaken: false),
  entry(
    "presence-4-layers", "A stream of four layers.", 1,
    presence([stream(0, name(6), Array(repeating: [1, 64, 0, 180, 30], count: 4))]),
    isTaken: false),
  entry(
    "epoch-0", "An epoch of number 0.", 8, epoch(number: 0, removed: 0, kept: 0), isTaken: false),
  entry(
    "epoch-5-removed", "An epoch that removes five.", 8, epoch(removed: 5, kept: 0),
    isTaken: false),
  entry("epoch-97-kept", "An epoch that keeps 97.", 8, epoch(removed: 0, kept: 97), isTaken: false),
]

// MARK: Bodies

private let call = [UInt8](0xE0...0xEF)
private let boot: [UInt8] = [1, 2, 3, 4, 5, 6, 7, 8]

private func zeros(_ count: Int) -> [UInt8] { [UInt8](repeating: 0, count: count) }

/// Encodes a list of id prefixes: a count of one byte, then 8 bytes for each id.
private func ids(_ values: [UInt64]) -> [UInt8] {
  [UInt8(values.count)] + values.flatMap { bigEndian($0) }
}

/// Encodes a name: a length of one byte, and that many letters.
private func name(_ length: UInt8) -> [UInt8] {
  [length] + [UInt8](repeating: 0x61, count: Int(length))
}

private func claim(term: UInt32) -> [UInt8] { call + bigEndian(term) + zeros(16) }

private func message(_ length: UInt16, to receiver: [UInt8] = []) -> [UInt8] {
  zeros(8) + [0, receiver.isEmpty ? 0 : 1] + receiver + bigEndian(length)
    + [UInt8](repeating: 0x61, count: Int(length))
}

private func grant(role: UInt8 = 3, flags: UInt8 = 0) -> [UInt8] {
  zeros(32) + [role] + zeros(12) + [flags]
}

private func presence(_ streams: [[UInt8]]) -> [UInt8] {
  boot + zeros(2) + name(4) + [UInt8(streams.count)] + streams.flatMap { $0 }
}

private func stream(_ number: UInt8, _ name: [UInt8], _ layers: [[UInt8]]) -> [UInt8] {
  [number] + name + [0, UInt8(layers.count)] + layers.flatMap { $0 }
}

private func epoch(number: UInt32 = 1, removed: Int, kept: Int) -> [UInt8] {
  bigEndian(number) + zeros(64) + [UInt8(removed)] + zeros(32 * removed) + [UInt8(kept)]
    + zeros(8 * kept)
}

/// An entry with this body, signed although its author must not write it.
private func entry(
  _ name: String, _ description: String, _ kind: UInt8, _ body: some Sequence<UInt8>,
  lamport: UInt64 = 1, isTaken: Bool
) -> Case {
  let bytes: [UInt8]
  if let cast = try? Cast() {
    let unsigned =
      cast.anna.id.key.bytes + bigEndian(UInt64(1)) + bigEndian(lamport) + [kind] + Array(body)
    bytes =
      unsigned + cast.anna.sign(Array("muster/1 entry".utf8) + cast.channelID.hash.bytes + unsigned)
  } else {
    bytes = []
  }
  return Case(name, description, ["entry": .hex(bytes)], expected: .flag(isTaken))
}
