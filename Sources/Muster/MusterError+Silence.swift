import MusterBase
import MusterCore
import MusterNetwork

extension MusterError {
  /// Creates the hint that nobody else is in a channel, for a likely reason. `peers` are the named
  /// ones that serve the channel, `port` is this node's.
  init(solitude reason: Solitude.Reason, channel: String, peers: [String], port: UInt16) {
    switch reason {
    case .otherChannel(let address):
      self.init(
        "alone in \(channel), but \(address) announces a channel that this node has no key for",
        hint: "if you expect them here, compare the channel's name and the passphrase, or ask for "
          + "a new invite")
    case .unanswered(let address):
      self.init(
        "alone in \(channel): a member announces itself at \(address), but does not answer",
        hint: "a firewall here or there drops UDP (let in port \(port)), or the access point "
          + "keeps its clients apart: use a cable, another network, or a rendezvous")
    case .peersSilent:
      self.init(
        "alone in \(channel): nobody answers at \(peers.joined(separator: ", "))",
        hint: "is muster running there, in the same channel and with the same passphrase? A "
          + "firewall there must let that UDP port in")
    case .nothingHeard:
      self.init(
        "alone in \(channel): nobody is heard on this network",
        hint: "fine if you are the first. Otherwise a firewall must let in UDP ports "
          + "\(Sockets.Discovery.port) and \(port); where an access point keeps its clients "
          + "apart, use --peer HOST:PORT or --rendezvous")
    }
  }

  /// Creates the notice that a peer that others know of could not be reached. `near`: one of the
  /// `addresses` that is on a network of this machine.
  init(unreached peer: NodeID, tried addresses: [Address], near: Address?, channel: String) {
    let list = addresses.map(\.description).joined(separator: ", ")
    let between = near == nil ? "a NAT" : "an access point that keeps its clients apart"
    let cause = "\(near.map { "\($0) is on this network, and " } ?? "")\(between) or a firewall"
    self.init(
      "\(peer.short) is registered for \(channel), but answers at none of its addresses, "
        + list,
      hint: "if it is still running, \(cause) is in between: let a member join that both can "
        + "reach, which then relays, or forward a UDP port to one of you and use --listen")
  }

  /// Creates the warning that this node's identity runs on another machine, too; `address` is nil
  /// if the other one is known by its entries alone.
  init(twinAt address: Address?) {
    self.init(
      "this node's identity runs a second time\(address.map { ", at \($0)" } ?? ""): each takes "
        + "the other's place, and calls break",
      hint: "give each machine an identity of its own: end one of them and start it with another "
        + "--data directory, not a copy")
  }

  /// Creates the warning that a member, given by its name, runs on two machines at once.
  init(runsTwice member: String, channel: String) {
    self.init(
      "\(member) runs twice in \(channel) with the same identity, and calls with it break",
      hint: "tell them: each machine needs an identity of its own, not a copied data directory")
  }
}
