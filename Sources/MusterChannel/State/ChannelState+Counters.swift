extension ChannelState {
  /// Counters of gossip since this node entered the channel: entries, comparisons and misbehaviour.
  public var gossipCounters: GossipCounters { gossip.counters }
}
