import MusterBase
import MusterCrypto
import Testing

private func id(_ first: UInt8) throws -> NodeID {
  try #require(Identity(seed: (0..<32).map { first + $0 })).id
}

/// The code was computed with Python's hashlib, as `docs/PROTOCOL.md` section 12 says.
@Test func theCodeOfAnnaAndBertIsAsWritten() throws {
  let channel = ChannelKey.fromName("lab").channelID
  let (anna, bert) = (try id(0), try id(0x20))
  let code = VerificationCode.text(channel: channel, anna, bert)
  #expect(code == "50870 47591 31980 23343 57275")
  #expect(VerificationCode.text(channel: channel, bert, anna) == code)
}

@Test func theCodeDependsOnBothAndOnTheChannel() throws {
  let channel = ChannelKey.fromName("lab").channelID
  let other = ChannelKey.fromName("lab2").channelID
  let (anna, bert, eve) = (try id(0), try id(0x20), try id(0x40))
  let codes = [
    VerificationCode.text(channel: channel, anna, bert),
    VerificationCode.text(channel: channel, anna, eve),
    VerificationCode.text(channel: channel, eve, bert),
    VerificationCode.text(channel: other, anna, bert),
  ]
  for (index, code) in codes.enumerated() {
    #expect(!codes[..<index].contains(code))
    #expect(code.split(separator: " ").map(\.count) == [5, 5, 5, 5, 5])
    #expect(code.filter { $0 != " " }.count == VerificationCode.digits)
    #expect(code.utf8.allSatisfy { $0 == 0x20 || (0x30...0x39).contains($0) })
  }
}
