import MusterBase
import MusterWire
import Testing

/// One message of every kind, with lists that are not empty.
private func messages(_ samples: inout Samples) -> [Control] {
  let lists: [RangeSummary] = [
    RangeSummary(
      depth: 4, prefix: samples.u64(),
      content: .fingerprint(samples.random.bytes(RangeSummary.fingerprintBytes))),
    RangeSummary(depth: 60, prefix: samples.u64(), content: .ids([1, 2, 3])),
  ]
  return [
    .entry([1, 2, 3]), .entriesReceived([1, 2]), .subscribe(Subscription(.screen, .best)), .ping(1),
    .sentLayer(SentLayer(.camera, nil, why: .muted)),
    .pong(2),
    .digest(DocumentDigest(count: 3, sum: samples.key())), .ranges(lists), .want([4]),
    .probe(samples.node(), token: 5), .probed(samples.node(), token: 6, answered: true),
    .epochKey(samples.random.bytes(32), entry: [7]), .refused(.removed),
    .seen(samples.address()), .candidates([samples.address()]),
  ]
}

/// A control payload of one message with this value.
private func payload(_ type: UInt8, _ value: [UInt8]) -> [UInt8] {
  [1, type, UInt8(value.count >> 8), UInt8(value.count & 255)] + value
}

@Test func everyControlMessageCutShortIsRefused() throws {
  var samples = Samples(seed: 51)
  for message in messages(&samples) {
    let bytes = Control.encode([message])
    #expect(try Control.decode(bytes) == [message])
    for count in bytes.indices where count != 1 {
      #expect(throws: WireError.truncated) { try Control.decode(Array(bytes.prefix(count))) }
    }
  }
}

/// Truncates each type's value, with a matching length field; only the lengths in `mayEnd` are
/// valid.
@Test func valuesOfOtherLengthsAreRefused() throws {
  var samples = Samples(seed: 52)
  let mayEnd: [UInt8: [Int]] = [
    1: [0, 1, 2], 2: [0, 8], 7: [0, 26], 8: [0], 11: [32], 14: [0],
  ]
  for message in messages(&samples) {
    let bytes = Control.encode([message])
    let (type, value) = (bytes[1], Array(bytes.dropFirst(4)))
    for count in value.indices where !(mayEnd[type] ?? []).contains(count) {
      let cut = payload(type, Array(value.prefix(count)))
      #expect(throws: WireError.self, "type \(type), \(count) bytes") { try Control.decode(cut) }
    }
    // An entry may have any length.
    guard type != 1, type != 11 else { continue }
    #expect(throws: WireError.self, "type \(type)") {
      try Control.decode(payload(type, value + [0]))
    }
  }
}

@Test func listsBeyondTheirBoundsAreRefused() {
  let ids = [UInt8](repeating: 1, count: 8 * (Control.idLimit + 1))
  for type: UInt8 in [2, 8] {
    #expect(throws: WireError.tooLong) { try Control.decode(payload(type, ids)) }
  }
  let addresses = Array(repeatElement([4, 1, 2, 3, 4, 5, 6] as [UInt8], count: 9).joined())
  #expect(throws: WireError.tooLong) { try Control.decode(payload(14, addresses)) }
  let range = [UInt8](repeating: 0, count: 10 + RangeSummary.fingerprintBytes)
  let ranges = Array(repeatElement(range, count: Control.rangeLimit + 1).joined())
  #expect(throws: WireError.tooLong) { try Control.decode(payload(7, ranges)) }
  let listed = [UInt8](repeating: 0, count: 9) + [1, UInt8(RangeSummary.idLimit + 1)]
  #expect(throws: WireError.tooLong) {
    try Control.decode(payload(7, listed + ids.prefix(8 * (RangeSummary.idLimit + 1))))
  }
  let deep = [RangeSummary.depthLimit + 1] + range.dropFirst()
  #expect(throws: WireError.invalidValue) { try Control.decode(payload(7, deep)) }
  let odd = Array(range.prefix(9)) + [2]
  #expect(throws: WireError.invalidValue) { try Control.decode(payload(7, odd)) }
}

@Test func aReasonThatIsNotKnownIsReadAsSuch() throws {
  #expect(try Control.decode(payload(12, [77])) == [.refused(.unknown)])
}

@Test func everyGenesisCutShortOrLongerIsRefused() {
  var samples = Samples(seed: 53)
  for _ in 0..<100 {
    let bytes = samples.genesis().encoded()
    for count in bytes.indices {
      #expect(throws: WireError.truncated) { try Genesis(decoding: bytes.prefix(count)) }
    }
    #expect(throws: WireError.trailingBytes) { try Genesis(decoding: bytes + [0]) }
  }
}

/// An invalid field of an entry's body: a list that is too long, or an undefined value.
private struct WrongField: Sendable {
  var kind: EntryBody.Kind
  var index: Int
  var value: UInt8
  var error: WireError
}

private let wrongFields = [
  // Name, streams.
  WrongField(kind: .presence, index: 10, value: 65, error: .tooLong),
  WrongField(kind: .presence, index: 11, value: 5, error: .tooLong),
  WrongField(kind: .neighbourReport, index: 8, value: 65, error: .tooLong),
  WrongField(kind: .neighbourReport, index: 9, value: 33, error: .tooLong),
  WrongField(kind: .claim, index: 19, value: 0, error: .invalidValue),
  // Predecessors, receiver flag, content.
  WrongField(kind: .message, index: 8, value: 5, error: .tooLong),
  WrongField(kind: .message, index: 9, value: 2, error: .invalidValue),
  WrongField(kind: .message, index: 10, value: 4, error: .tooLong),
  WrongField(kind: .grant, index: 32, value: 5, error: .invalidValue),
  WrongField(kind: .redemption, index: 0, value: 2, error: .tooLong),
  // Number, removed, kept.
  WrongField(kind: .epoch, index: 3, value: 0, error: .invalidValue),
  WrongField(kind: .epoch, index: 68, value: 5, error: .tooLong),
  WrongField(kind: .epoch, index: 69, value: 97, error: .tooLong),
]

@Test func fieldsThatCannotBeAreRefused() throws {
  for wrong in wrongFields {
    var body = [UInt8](repeating: 0, count: 1000)
    // The term of a claim and the number of an epoch are never 0.
    if wrong.kind == .claim { body[19] = 1 }
    if wrong.kind == .epoch { body[3] = 1 }
    let start = [UInt8](repeating: 0, count: 48) + [wrong.kind.rawValue]
    _ = try Entry(decoding: start + body)
    body[wrong.index] = wrong.value
    #expect(throws: wrong.error, "\(wrong)") { try Entry(decoding: start + body) }
  }
}
