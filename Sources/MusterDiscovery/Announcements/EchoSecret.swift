import MusterBase
import MusterCrypto
import MusterWire

/// Creates and verifies the echoes of challenges without state.
///
/// An echo is a MAC over recipient, address and time slot, keyed by a secret per opened channel,
/// like the cookies of RFC 6347 section 4.2.1: unauthenticated peers cost no memory.
struct EchoSecret: Sendable {
  /// The length of a time slot. An echo is valid in the slot of its creation and in the next one:
  /// for 10 to 20 s.
  static let slot = Duration.seconds(10)

  private let secret: SecretBytes

  init(entropy: inout Entropy) { secret = entropy.secret(32, in: .heap) }

  func echo(for announcement: Announcement, in key: KeyID, at source: Address, now: Instant)
    -> [UInt8]
  {
    mac(announcement, key, source, slot: Self.number(of: now))
  }

  /// Whether the announcement carries an echo that was recently sent to its author at `source`.
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
    writer.append(key.hash)
    writer.append(announcement.author.key)
    writer.u64(announcement.bootID)
    writer.address(source)
    // The zone is included because one link-local address can denote different hosts on two
    // interfaces.
    if case .v6(_, _, let zone) = source.host { writer.u32(zone) }
    writer.u64(UInt64(bitPattern: slot))
    return Blake2b.mac(writer.bytes[...], key: secret, count: Announcement.echoBytes)
  }
}
