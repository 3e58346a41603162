/// How often a channel refused what a peer sent it; each way of being wrong has its own.
public struct ChannelCounters: Equatable, Sendable {
  /// A peer beyond `Limits.peersPerChannel`.
  public var peersRefused: UInt64 = 0
  /// A hello over no link that this channel knows of.
  public var unlinked: UInt64 = 0
  /// More hellos than a member has reason to send.
  public var overBudget: UInt64 = 0
  public var malformed: UInt64 = 0
  /// Not signed by the author that it names, or for another channel.
  public var forged: UInt64 = 0
  /// Somebody else's hello.
  public var foreign: UInt64 = 0
  /// Of a process that another has replaced.
  public var formerBoot: UInt64 = 0
  /// Known already, or older than what is known.
  public var repeated: UInt64 = 0
  /// Acknowledges what was never said.
  public var strangeAcknowledgement: UInt64 = 0

  public init() {}
}
