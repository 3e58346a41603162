extension ChannelState {
  /// What became of the document's entries since this node entered the channel.
  public var gossipCounters: GossipCounters { gossip.counters }
}
