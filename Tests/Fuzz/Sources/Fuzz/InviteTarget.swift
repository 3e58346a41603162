import MusterBase
import MusterWire

/// Invites as URLs, and as decoded bytes.
///
/// Promises: an accepted invite encodes to the same URL; its name is safe to display; no field
/// exceeds its limit.
enum InviteTarget {
  static func run(_ bytes: [UInt8]) {
    read(String(decoding: bytes, as: UTF8.self))
    // Corrects the checksum, which would otherwise reject almost every input.
    read(Invite.scheme + "fuzz/#" + base64(bytes + checksum(bytes)))
  }

  private static func read(_ text: String) {
    guard let invite = try? Invite(url: text) else { return }
    let url = invite.url
    check(url.utf8.count <= Invite.urlLimit, "an accepted invite is not too long to be written")
    check((try? Invite(url: url)) == invite, "an invite comes back")
    check(url.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }, "an address is plain")
    let shown = DisplayText.sanitized(invite.name, limit: Limits.channelNameBytes)
    check(!shown.isEmpty && shown == invite.name, "a name is safe to show")
    check(invite.key.count == 32, "a key has 32 bytes")
    check(invite.peers.count <= Limits.inviteHints, "hints are bounded")
    check(invite.rendezvous.count <= Limits.inviteHints, "hints are bounded")
  }

  /// CRC-32, most significant byte first.
  private static func checksum(_ bytes: [UInt8]) -> [UInt8] {
    var crc = UInt32.max
    for byte in bytes {
      crc ^= UInt32(byte)
      for _ in 0..<8 { crc = crc & 1 == 1 ? crc >> 1 ^ 0xEDB8_8320 : crc >> 1 }
    }
    return [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: ~crc >> $0) }
  }

  private static let digits = Array(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

  private static func base64(_ bytes: [UInt8]) -> String {
    var text: [UInt8] = []
    for start in stride(from: 0, to: bytes.count, by: 3) {
      let group = Array(bytes[start..<min(start + 3, bytes.count)])
      let padded = group + [UInt8](repeating: 0, count: 3 - group.count)
      let bits = padded.reduce(0) { $0 << 8 | Int($1) }
      for index in 0...group.count { text.append(digits[bits >> (18 - 6 * index) & 63]) }
    }
    return String(decoding: text, as: UTF8.self)
  }
}
