import Foundation
import MusterBase
import MusterWire
import Testing

/// An independent implementation of the base64url form and the checksum of invites.
private enum Foreign {
  static func bytes(of url: String) throws -> [UInt8] {
    let digits = try #require(url.split(separator: "#").last)
    var text = String(digits).replacing("-", with: "+").replacing("_", with: "/")
    while text.utf8.count % 4 != 0 { text += "=" }
    return [UInt8](try #require(Data(base64Encoded: text)))
  }

  static func url(of bytes: [UInt8]) -> String {
    let text = Data(bytes).base64EncodedString()
      .replacing("+", with: "-").replacing("/", with: "_")
    return "muster://lab/#" + text.prefix { $0 != "=" }
  }

  /// `body` with its CRC-32, bit by bit from the highest down (ISO 3309 annex A, reflected).
  static func summed(_ body: [UInt8]) -> [UInt8] {
    var crc = UInt32.max
    for byte in body {
      for bit in 0..<8 {
        let isSet = (crc ^ UInt32(byte) >> UInt32(bit)) & 1 == 1
        crc = isSet ? crc >> 1 ^ 0xEDB8_8320 : crc >> 1
      }
    }
    return body + withUnsafeBytes(of: (~crc).bigEndian) { [UInt8]($0) }
  }

  /// Version, flags, epoch and key of an open channel.
  static let start: [UInt8] = [1, 0, 0, 0, 0, 0] + [UInt8](repeating: 7, count: 32)

  static func name(_ text: String) -> [UInt8] { [UInt8(text.utf8.count)] + Array(text.utf8) }
}

@Test func anInviteIsBase64URLOfItsBytes() throws {
  var samples = Samples(seed: 41)
  for _ in 0..<300 {
    let invite = samples.invite()
    let bytes = try Foreign.bytes(of: invite.url)
    #expect(Foreign.summed(Array(bytes.dropLast(4))) == bytes)
    // The name before the number sign is for people only and is not read.
    #expect(try Invite(url: Foreign.url(of: bytes)) == invite)
  }
  let plain = Foreign.start + Foreign.name("lab") + [0, 0]
  let read = try Invite(url: Foreign.url(of: Foreign.summed(plain)))
  #expect(read.name == "lab" && read.key == [UInt8](repeating: 7, count: 32))
  #expect(read.genesis == nil && read.oneTimeSeed == nil && read.grant == nil)
}

@Test func anInviteOfALaterVersionIsSaidToBeNewer() throws {
  var samples = Samples(seed: 42)
  for version in UInt8(2)...UInt8(255) {
    var bytes = try Foreign.bytes(of: samples.invite().url)
    bytes[0] = version
    // A later version may define the checksum differently, so it is not verified.
    #expect(throws: InviteFault.newerVersion) { try Invite(url: Foreign.url(of: bytes)) }
  }
  let rest = Foreign.start.dropFirst() + Foreign.name("lab") + [0, 0]
  let none = Foreign.summed([0] + rest)
  #expect(throws: InviteFault.damaged) { try Invite(url: Foreign.url(of: none)) }
}

@Test func everyAlteredBitIsNoticed() throws {
  let bytes = Foreign.summed(Foreign.start + Foreign.name("lab") + [0, 0])
  for index in bytes.indices {
    for bit in UInt8(0)..<8 {
      var altered = bytes
      altered[index] ^= 1 << bit
      let fault: InviteFault = altered[0] > 1 ? .newerVersion : .damaged
      #expect(throws: fault) { try Invite(url: Foreign.url(of: altered)) }
    }
  }
}

@Test func everyInviteCutShortIsDamaged() throws {
  var samples = Samples(seed: 44)
  for _ in 0..<4 {
    let bytes = try Foreign.bytes(of: samples.invite().url)
    for count in 0..<bytes.count {
      let cut = Array(bytes.prefix(count))
      #expect(throws: InviteFault.damaged) { try Invite(url: Foreign.url(of: cut)) }
    }
    // A truncated invite is refused even with a valid checksum: no field is read beyond the end.
    for count in 1..<bytes.count - 4 {
      let cut = Foreign.summed(Array(bytes.prefix(count)))
      #expect(throws: InviteFault.damaged) { try Invite(url: Foreign.url(of: cut)) }
    }
  }
}

/// Only canonical base64url is accepted, so that an invite has exactly one URL.
@Test func onlyOneSpellingOfAnInviteIsRead() throws {
  // The three lengths leave 0, 2 and 4 bits unused in the last digit.
  for name in ["a", "ab", "abc"] {
    let body = Foreign.start + Foreign.name(name) + [0, 0]
    let good = Foreign.url(of: Foreign.summed(body))
    #expect(try Invite(url: good).name == name)
    for ending in ["=", "==", "A", "AA", "-", "+", "/", ".", "é", "\u{0}"] {
      #expect(throws: InviteFault.damaged) { try Invite(url: good + ending) }
    }
    guard Foreign.summed(body).count % 3 != 0, let last = good.utf8.last else { continue }
    // A last digit whose unused bits are not zero would decode to the same bytes.
    let alphabet = Array(
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
    let index = try #require(alphabet.firstIndex(of: last))
    let other = good.dropLast() + String(UnicodeScalar(alphabet[index + 1]))
    #expect(throws: InviteFault.damaged) { try Invite(url: String(other)) }
  }
  // Plain base64 has other digits, `+` and `/`, for two values.
  let key = Array(Foreign.start.dropLast(5)) + [0xFB, 0xEF, 0xFF, 7, 7]
  let body = key + Foreign.name("lab") + [0, 0]
  let good = Foreign.url(of: Foreign.summed(body))
  #expect(good.contains("-") && good.contains("_"))
  _ = try Invite(url: good)
  for (ours, theirs) in [("-", "+"), ("_", "/")] {
    let plain = good.replacing(ours, with: theirs)
    #expect(throws: InviteFault.damaged) { try Invite(url: plain) }
  }
}

private let wrongFields: [[UInt8]] = [
  Foreign.name("") + [0, 0],
  Foreign.name("a\u{7}b") + [0, 0],
  Foreign.name(" lab") + [0, 0],
  Foreign.name("a\u{202E}b") + [0, 0],
  [2, 0xC0, 0x80, 0, 0],
  Foreign.name(String(repeating: "a", count: Limits.channelNameBytes + 1)) + [0, 0],
  Foreign.name("lab") + [0, 0, 0],
  Foreign.name("lab") + [UInt8](repeating: UInt8(Limits.inviteHints + 1), count: 1)
    + [UInt8](repeating: 0, count: Limits.inviteHints + 2),
]

@Test(arguments: wrongFields)
func anInviteWithARightSumAndAWrongFieldIsDamaged(fields: [UInt8]) {
  let bytes = Foreign.summed(Foreign.start + fields)
  #expect(throws: InviteFault.damaged) { try Invite(url: Foreign.url(of: bytes)) }
}

@Test func aTooLongTextIsNoInvite() {
  let long = "muster://lab/#" + String(repeating: "A", count: Invite.urlLimit)
  #expect(throws: InviteFault.notAnInvite) { try Invite(url: long) }
}

@Test func hintsThatDoNotFitAreLeftOut() throws {
  var samples = Samples(seed: 45)
  var invite = samples.invite()
  invite.peers = [String(repeating: "a", count: 256)] + (0..<20).map { "192.0.2.\($0):1" }
  let read = try Invite(url: invite.url)
  #expect(read.peers == (0..<Limits.inviteHints).map { "192.0.2.\($0):1" })
}
