import MusterBase
import MusterCrypto
import MusterWire

/// Makes and checks the echoes of challenges without remembering any of them.
///
/// An echo is a MAC under a secret of one opening of a channel over whom it was given to, where and
/// when, after the cookies of RFC 6347 4.2.1: it costs no memory to give one to a stranger.
struct EchoSecret: Sendable {
  /// An echo counts in the slot in which it was made and in the next: 10 to 20 s.
  static let slot = Duration.seconds(10)

  private let secret: SecretBytes

  init(entropy: inout Entropy) { secret = entropy.secret(32, in: .heap) }

  func echo(for announcement: Announcement, in key: KeyID, at source: Address, now: Instant)
    -> [UInt8]
  {
    mac(announcement, key, source, slot: Self.number(of: now))
  }

  /// Whether the announce carries an echo that was given to its author at `source` just now.
  func isValid(
    _ announcement: Announcement, in key: KeyID, at source: Address, now: Instant
  )
    -> Bool
  {
    guard let echo = announcement.echo else { return false }
    let current = Self.number(of: now)
    return [current, current &- 1].contains {
      ConstantTime.equal(mac(announcement, key, source, slot: $0), echo)
    }
  }

  private static func number(of now: Instant) -> Int64 {
    now.nanoseconds / slot.wholeNanoseconds
  }

  private func mac(
    _ announcement: Announcement, _ key: KeyID, _ source: Address, slot: Int64
  )
    -> [UInt8]
  {
    var writer = Writer(capacity: 128)
    writer.append("muster/1 echo".utf8)
    writer.append(key.key)
    writer.append(announcement.author.key)
    writer.u64(announcement.bootID)
    writer.address(source)
    // The same link-local address on two interfaces is two places.
    if case .v6(_, _, let zone) = source.host { writer.u32(zone) }
    writer.u64(UInt64(bitPattern: slot))
    return Blake2b.mac(writer.bytes[...], key: secret, count: Announcement.echoBytes)
  }
}
