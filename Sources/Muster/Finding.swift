import MusterBase
import MusterNetwork

/// Where a node looks for others beyond the announcements on its local network.
struct Finding {
  /// The peers named by the user or by invites.
  var peers: PeerResolver
  /// The rendezvous servers named by the user, by invites or by earlier runs.
  var rendezvous: PeerResolver
  /// The addresses that were found.
  var addresses = PeerAddresses()
  /// The DHT state; nil if no DHT is configured.
  var dht: MusterNode.DHTState?
  /// The rendezvous servers of each channel last written to the store, as `HOST:PORT`.
  var rememberedRendezvous: [ChannelID: [String]] = [:]

  /// Reads the names in a configuration, and opens the DHT if it has any; throws for what is no
  /// name, and if the DHT cannot be opened.
  init(_ configuration: Configuration) throws(MusterError) {
    func resolver(_ names: [String], _ option: String) throws(MusterError) -> PeerResolver {
      PeerResolver(
        endpoints: try names.map { text throws(MusterError) in
          try PeerResolver.Endpoint(text, option: option)
        })
    }
    peers = try resolver(configuration.peers, "--peer")
    rendezvous = try resolver(configuration.rendezvous, "--rendezvous")
    dht = try MusterNode.DHTState(configuration.dht)
  }
}
