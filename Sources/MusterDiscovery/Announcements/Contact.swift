import MusterBase

/// An address through which members may be found, a peer's or a rendezvous server's, and the
/// channels that it may learn of.
///
/// The addresses in an invite are chosen by its maker. They serve the invite's channel alone, so
/// that they learn nothing of the others: neither when this node is in them, nor with how many.
public struct Contact: Equatable, Sendable {
  /// The address to send to.
  public let address: Address
  /// The channels that the address serves; nil for all.
  public private(set) var channels: [ChannelID]?

  /// Creates a contact for these channels, or for all of them.
  public init(_ address: Address, for channels: [ChannelID]? = nil) {
    self.address = address
    self.channels = channels
  }

  func serves(_ channel: ChannelID) -> Bool { channels?.contains(channel) ?? true }

  /// The contacts with unicast addresses, at most `limit`, each address once with the channels of
  /// all its contacts.
  static func merged(_ contacts: [Contact], limit: Int) -> [Contact] {
    var merged: [Contact] = []
    for contact in contacts where contact.address.isUnicast {
      if let index = merged.firstIndex(where: { $0.address == contact.address }) {
        merged[index].add(contact.channels)
      } else if merged.count < limit {
        merged.append(contact)
      }
    }
    return merged
  }

  private mutating func add(_ others: [ChannelID]?) {
    guard let own = channels, let others else {
      channels = nil
      return
    }
    channels = own + others.filter { !own.contains($0) }
  }
}
