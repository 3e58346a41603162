extension ChannelState {
  /// Counts of the document's entries by outcome since this node entered the channel.
  public var gossipCounters: GossipCounters { gossip.counters }
}
