import MusterBase
import MusterChannel
import MusterCongestion
import MusterDiscovery
import MusterLink
import MusterMedia

/// The counters of a node's engines, for diagnostics.
public struct NodeDiagnostics: Equatable, Sendable {
  /// The counters of datagrams, handshakes and paths of all links.
  public var link: LinkCounters
  /// The counters of accepted and rejected announcements and challenges in all channels.
  public var discovery: DiscoveryCounters
  /// The counters of datagrams that could not be relayed.
  public var relay: RelayCounters
  /// The counters of the rendezvous server; nil if the node is not a rendezvous server.
  public var rendezvous: RendezvousCounters?
  /// The gossip counters of each channel that the node is in.
  public var gossip: [GossipCounters]
  /// The statistics of each video stream that is being received.
  public var video: [VideoStatistics]
  /// The number of video packets retransmitted to the participants of the current calls.
  public var videoPacketsRepeated: UInt64
}

extension Node {
  /// Returns the engines' current counters.
  public func diagnostics(at now: Instant) -> NodeDiagnostics {
    NodeDiagnostics(
      link: links.counters, discovery: discovery.counters, relay: relaying.counters,
      rendezvous: server?.counters,
      gossip: (0..<channels.count).map { channels[at: $0].state.gossipCounters },
      video: media.receivedVideo(at: now), videoPacketsRepeated: media.videoPacketsRepeated)
  }
}

extension Node {
  /// All known paths in order of peer and route, including those that no link uses.
  public var paths: [(id: PathID, path: Path, estimate: PathEstimate?)] {
    links.paths.ids.compactMap { id in
      links.paths[id].map { (id, $0, congestion.path(id)?.measured) }
    }
  }
}

extension MediaSessions {
  /// The statistics of each video stream that is being received.
  fileprivate func receivedVideo(at now: Instant) -> [VideoStatistics] {
    (0..<sessions.count).flatMap { sessions[at: $0].call?.incoming.statistics(at: now) ?? [] }
  }

  fileprivate var videoPacketsRepeated: UInt64 {
    (0..<sessions.count).reduce(0) {
      $0 &+ (sessions[at: $1].call?.outgoing.packetsRepeated ?? 0)
    }
  }
}
