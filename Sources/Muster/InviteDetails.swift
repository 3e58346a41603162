import MusterBase
import MusterChannel
import MusterCrypto
import MusterWire

/// What an invite says about the channel that it leads to, as far as its signatures prove it.
public struct InviteDetails: Equatable, Sendable {
  /// The channel's name, as the invite's maker chose it.
  public let channel: String
  /// The channel's id.
  public let id: ChannelID
  /// `created` for a channel with an owner and roles, otherwise `open`.
  public let kind: Administration.ChannelSummary.Kind
  /// The role that the invite gives; in an open channel everyone is a presenter.
  public let role: Role
  /// Whether the role permits sending audio and video.
  public let maySend: Bool
  /// The member that signed the invite, an owner if members accept it; nil for an open channel,
  /// whose invites nobody signs.
  public let maker: NodeID?
  /// The member that created the channel; nil for an open channel.
  public let creator: NodeID?

  /// Checks the signatures; throws if one is missing or wrong. Neither stores nor sends anything.
  public init(_ invite: Invite) throws(MusterError) {
    channel = invite.name
    guard let bytes = invite.genesis else {
      guard let key = ChannelKey(secret: invite.key) else { throw .damagedInvite }
      (id, kind, role, maySend) = (key.channelID, .open, .presenter, true)
      (maker, creator) = (nil, nil)
      return
    }
    guard let genesis = SignedGenesis.verified(bytes), let signed = invite.grant,
      let seed = invite.oneTimeSeed, let oneTime = Identity(seed: seed),
      let entry = try? SignedEntry.verified(signed, in: genesis.channelID).entry,
      case .grant(let grant) = entry.body, grant.subject == oneTime.id
    else { throw .damagedInvite }
    id = genesis.channelID
    (kind, role) = (.created, grant.role)
    maySend = Capability.sendAudio.isAllowed(to: role, in: genesis.genesis.settings)
    (maker, creator) = (entry.author, genesis.genesis.owner)
  }
}

extension MusterError {
  /// The error for an invite whose content is not what an owner signed.
  static let damagedInvite = MusterError(
    "the invite is damaged", hint: "copy it again, or ask for a new one")
}
