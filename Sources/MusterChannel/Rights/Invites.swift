import MusterBase
import MusterCrypto
import MusterWire

/// Signs and verifies redemptions of invites. An invite holds a bearer grant, signed by an owner,
/// and the secret of the one-time key that the grant names.
public enum Invites {
  /// The redemption by which `redeemer` obtains the role in `grant`; `secret` is the one-time key
  /// of the invite.
  public static func redemption(
    of grant: [UInt8], secret: Identity, by redeemer: NodeID, in channel: ChannelID
  ) -> Redemption {
    Redemption(
      // A longer grant was not made by this software; receivers refuse it, truncated or not.
      grant: Array(grant.prefix(Redemption.grantEntryLimit)),
      signature: secret.sign(message(redeemer, channel)))
  }

  /// The bearer grant, if its author's signature and the one-time key's signature over the redeemer
  /// are valid; nil otherwise. The caller checks whether the author is an owner.
  public static func verified(
    _ redemption: Redemption, by redeemer: NodeID, in channel: ChannelID
  ) -> SignedEntry? {
    guard let entry = try? SignedEntry.verified(redemption.grant, in: channel),
      case .grant(let grant) = entry.entry.body, grant.isBearer,
      Signatures.isValid(
        redemption.signature, of: message(redeemer, channel), by: grant.subject)
    else { return nil }
    return entry
  }

  private static func message(_ redeemer: NodeID, _ channel: ChannelID) -> [UInt8] {
    Array("muster/1 redeem".utf8) + channel.hash.bytes + redeemer.key.bytes
  }
}
