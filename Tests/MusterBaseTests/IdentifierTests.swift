import MusterBase
import Testing

@Test func bytesKeepTheirOrderAndValue() throws {
  var random = PRNG(seed: 1)
  for _ in 0..<10_000 {
    var first = random.bytes(32)
    // Many pairs share a prefix, so that later bytes decide the order.
    let second = first.prefix(random.below(33)) + random.bytes(32)
    let a = try #require(Bytes32(first))
    let b = try #require(Bytes32(second.prefix(32)))
    #expect(a.bytes == first)
    #expect((a < b) == first.lexicographicallyPrecedes(second.prefix(32)))
    #expect((a == b) == (first == Array(second.prefix(32))))
    first[31] &+= 1
    #expect(try #require(Bytes32(first)) != a)
  }
}

@Test func onlyThirtyTwoBytesWillDo() {
  for count in 0..<70 {
    #expect((Bytes32([UInt8](repeating: 7, count: count)) != nil) == (count == 32))
  }
  #expect(Bytes32.zero.bytes == [UInt8](repeating: 0, count: 32))
}

@Test func aNodeIsShownByItsFirstSixteenDigits() throws {
  let id = NodeID(try #require(Bytes32((0..<32).map { UInt8($0) })))
  #expect(id.short == "0001020304050607")
  #expect("\(id)" == "0001020304050607")
  #expect(id.key.prefix == 0x0001_0203_0405_0607)
  #expect(id.key.hex.hasSuffix("1c1d1e1f"))
}

@Test(
  arguments: [
    ("", [UInt8]()), ("00", [0]), ("ff00Aa", [255, 0, 0xAA]),
    ("0123456789abcdef", [1, 0x23, 0x45, 0x67, 0x89, 0xAB, 0xCD, 0xEF]),
  ] as [(String, [UInt8])])
func hexIsReadAndWritten(text: String, bytes: [UInt8]) {
  #expect(Hex.decode(text) == bytes)
  #expect(Hex.encode(bytes) == text.lowercased())
}

@Test(arguments: ["0", "0g", " 00", "0x00", "é", "00 ", "+1", "-1"])
func otherTextIsNoHex(text: String) { #expect(Hex.decode(text) == nil) }

@Test func wordsAreSixteenDigits() {
  #expect(Hex.encode(0x0123_4567_89AB_CDEF as UInt64) == "0123456789abcdef")
  #expect(CallID(high: 1, low: .max).description == "0000000000000001ffffffffffffffff")
  #expect(CallID(high: 1, low: .max) < CallID(high: 2, low: 0))
  #expect(CallID(high: 1, low: 0) < CallID(high: 1, low: 1))
}

@Test func linksAreOrderedByPeerFirst() throws {
  func key(_ byte: UInt8) throws -> Bytes32 {
    try #require(Bytes32([UInt8](repeating: byte, count: 32)))
  }
  let links = try [(1, 9), (2, 1), (2, 3)].map {
    LinkID(channel: ChannelID(try key($0.1)), peer: NodeID(try key($0.0)))
  }
  #expect(links.reversed().sorted() == links)
}
