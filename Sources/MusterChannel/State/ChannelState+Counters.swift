extension ChannelState {
  /// Counters of gossip since this node entered the channel: entries, anti-entropy and
  /// misbehaviour.
  public var gossipCounters: GossipCounters { gossip.counters }
}
