import MusterBase
import MusterMedia
import MusterWire

/// The selection of a simulcast layer of each stream for each receiver.
extension MediaSessions {
  /// Handles the peer's request for a stream at another resolution.
  mutating func receive(
    _ subscription: Subscription, from link: LinkID, at now: Instant
  ) -> [Output] {
    let stream = subscription.stream.index
    let changed =
      sessions.update(link) { session in
        // A subscription beyond the rate limit is ignored, but the peer repeats its subscriptions,
        // so the change is only delayed.
        guard session.requested[stream] != subscription.resolution,
          session.subscriptionBudgets[stream].take(at: now)
        else { return false }
        session.requested[stream] = subscription.resolution
        return true
      } ?? false
    return changed ? selectLayers(at: now) : []
  }

  /// Selects the layer of every stream for every receiver. If the set of selected layers changes,
  /// the outputs request the new set from the host's encoders.
  mutating func selectLayers(at now: Instant) -> [Output] {
    var out: [Output] = []
    for stream in local.streams.ids {
      let layers = local.streams.layers(of: stream)
      for index in 0..<sessions.count where sessions[at: index].call != nil {
        selectLayer(of: stream, among: layers, forSessionAt: index, at: now, &out)
      }
      let wanted = wantedLayers(of: stream)
      if local.streams.setEncoded(wanted, of: stream) {
        out.append(.host(.encode(stream, layers: wanted)))
      }
    }
    return out
  }

  private mutating func selectLayer(
    of stream: StreamID, among layers: [VideoLayer], forSessionAt index: Int, at now: Instant,
    _ out: inout [Output]
  ) {
    let requested = sessions[at: index].requested[stream.index]
    let prevented = sessions[at: index].call?.outgoingRights[stream]
    let selection = sessions[at: index].call?.outgoing.withStream(stream) {
      $0.select(requested, among: layers, prevented: prevented)
    }
    if let change = selection?.change {
      out.append(Self.event(change, .sent, of: stream, sessions.keys[index]))
    }
    notify(of: stream, sessionAt: index, &out)
    if let layer = selection?.keyframe {
      requestKeyframe(of: stream, layer: layer, at: now, &out)
    }
  }

  /// Notifies a receiver of the layer of a stream that it gets, and why, if that has changed.
  mutating func notify(
    of stream: StreamID, sessionAt index: Int, _ out: inout [Output]
  ) {
    let sent = sessions[at: index].call?.outgoing.update(stream) { $0.notification() } ?? nil
    if let sent { out.append(.control([.sentLayer(sent)], over: sessions.keys[index])) }
  }

  private func wantedLayers(of stream: StreamID) -> [Int] {
    var isWanted = [Bool](repeating: false, count: Limits.spatialLayers)
    for index in 0..<sessions.count {
      guard let layers = sessions[at: index].call?.outgoing.layers(of: stream) else { continue }
      if let current = layers.current { isWanted[current] = true }
      if let target = layers.target { isWanted[target] = true }
    }
    return isWanted.indices.filter { isWanted[$0] }
  }

  mutating func requestKeyframe(
    of stream: StreamID, layer: Int, at now: Instant, _ out: inout [Output]
  ) {
    if local.streams.requestKeyframe(of: stream, layer: layer, at: now) {
      out.append(.host(.encodeKeyframe(stream, layer: layer)))
    }
  }
}
