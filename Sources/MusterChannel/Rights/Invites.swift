import MusterBase
import MusterCrypto
import MusterWire

/// Invites: a bearer grant signed by an owner, and the one-time key that it names.
public enum Invites {
  /// What the holder of an invite's secret publishes to come into its role.
  public static func redemption(
    of grant: [UInt8], secret: Identity, by redeemer: NodeID, in channel: ChannelID
  ) -> Redemption {
    Redemption(
      // A longer one is none of ours and is refused by everyone, cut or not.
      grant: Array(grant.prefix(Redemption.grantEntryLimit)),
      signature: secret.sign(message(redeemer, channel)))
  }

  /// The bearer grant, once its author's signature and that of the one-time key over the redeemer
  /// are found good; whether its author is an owner is for the caller to say.
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
    Array("muster/1 redeem".utf8) + channel.key.bytes + redeemer.key.bytes
  }
}
