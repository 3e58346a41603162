import MusterBase
import MusterChannel
import MusterCore
import MusterStore

/// What the store holds of the channels that a request concerns, read before the node is called.
struct RequestedChannels: Sendable {
  private struct Details: Sendable {
    var entries: [[UInt8]]
    var identities: [KnownIdentity]
    /// Nil if the node was in the channel at the time of the read, or if the channel is open.
    var rights: Rights?
  }

  /// All stored channels, oldest first.
  let all: [StoredChannel]
  private var details: [ChannelID: Details] = [:]

  /// Reads what `request` needs. The rights of the channels that the node is in (`joined`) are not
  /// derived, which takes long, since the node knows them better.
  init(
    for request: Administration.Request, besides joined: [ChannelID], in store: StoreSnapshot
  ) throws {
    all = try store.channels()
    let named = request.channel.map { all.named($0) } ?? []
    for channel in request.verb == .list ? all : named {
      let entries = try store.entries(of: channel.id)
      let rights = joined.contains(channel.id) ? nil : channel.rights(from: entries)
      details[channel.id] = Details(
        entries: entries, identities: try store.identities(of: channel.id), rights: rights)
    }
  }

  /// The channel with this name or id; nil if there is none. Throws if there are several.
  func channel(named text: String) throws(MusterError) -> StoredChannel? {
    try all.only(named: text)
  }

  /// The identities known in a channel, least recently seen first.
  func identities(of channel: ChannelID) -> [KnownIdentity] {
    details[channel]?.identities ?? []
  }

  /// The roles in a created channel, as its stored entries say; nil for an open channel.
  func rights(in channel: StoredChannel) -> Rights? {
    guard let details = details[channel.id] else { return nil }
    // The node may have left the channel since the read.
    return details.rights ?? channel.rights(from: details.entries)
  }

  /// The setup for joining a channel, without the messages that the user has not seen: they stay
  /// unseen. Nil as in `StoredChannel.setup`.
  func setup(of channel: StoredChannel) -> ChannelSetup? {
    guard var setup = channel.setup else { return nil }
    setup.entries = details[channel.id]?.entries ?? []
    return setup
  }
}
