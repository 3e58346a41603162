import MusterBase
import MusterMedia
import MusterWire

/// The selection of a simulcast layer of each stream for each receiver.
extension MediaSessions {
  /// A bandwidth or an encoder's target stays the same if it would change by less than this.
  private static let similarPercent = 4

  /// Handles the peer's request for a stream; returns whether layers are to be selected for it.
  mutating func receive(
    _ subscription: Subscription, from link: LinkID, at now: Instant
  ) -> Bool {
    let stream = subscription.stream.index
    return sessions.update(link) { session in
      // A subscription beyond the rate limit is ignored, but the peer repeats its subscriptions, so
      // the change is only delayed.
      guard session.requested[stream] != subscription.request,
        session.subscriptionBudgets[stream].take(at: now)
      else { return false }
      session.requested[stream] = subscription.request
      return true
    } ?? false
  }

  /// Sets the bandwidth that the path of a link has for its video, in kbit/s of IP packets. Returns
  /// whether it differs from the one for which layers were last selected.
  mutating func set(pathBandwidth: Int, of link: LinkID) -> Bool {
    sessions.update(link) { session in
      guard Self.differs(pathBandwidth, from: session.pathBandwidth) else { return false }
      session.pathBandwidth = pathBandwidth
      return true
    } ?? false
  }

  /// Notes whether the path of a link itself carries less than its share of the uplink.
  mutating func set(isPathNarrow: Bool, of link: LinkID) {
    _ = sessions.update(link) { $0.isPathNarrow = isPathNarrow }
  }

  /// What the video of the links could use, in kbit/s of IP packets.
  func uplinkDemand(of links: [LinkID]) -> Int {
    links.reduce(0) { sum, link in
      let receiver = sessions.index(of: link).flatMap {
        sessions[at: $0].uplinkReceiver(local.streams)
      }
      return sum + (receiver?.most ?? 0)
    }
  }

  /// Divides what the uplink has for video, in kbit/s of IP packets, among the receivers of the
  /// links; nil if it is no limit. Returns the links whose share has changed.
  mutating func divide(uplink: Int?, among links: [LinkID]) -> [LinkID] {
    let receivers = links.map { link in
      sessions.index(of: link).flatMap { sessions[at: $0].uplinkReceiver(local.streams) }
    }
    var shares = uplink.map { UplinkPlan.shares(of: $0, among: receivers.compactMap(\.self))[...] }
    var changed: [LinkID] = []
    for (link, receiver) in zip(links, receivers) {
      let share = receiver == nil ? nil : shares?.removeFirst()
      let isNew = sessions.update(link) { session in
        guard share != session.uplinkShare else { return false }
        guard share == nil || Self.differs(share ?? 0, from: session.uplinkShare) else {
          return false
        }
        session.uplinkShare = share
        return true
      }
      if isNew ?? false { changed.append(link) }
    }
    return changed
  }

  private static func differs(_ bandwidth: Int, from last: Int?) -> Bool {
    let last = last ?? .max
    return abs(bandwidth - last) > last / 100 * similarPercent
  }

  /// The bandwidth for which the layers of a link are selected, in kbit/s of IP packets; nil if it
  /// is unlimited.
  func bandwidth(of link: LinkID) -> Int? {
    sessions.index(of: link).flatMap { sessions[at: $0].bandwidth }
  }

  /// The share of the uplink that the video of a link gets, in kbit/s of IP packets; nil if the
  /// uplink is no limit.
  func uplinkShare(of link: LinkID) -> Int? {
    sessions.index(of: link).flatMap { index in sessions.read(at: index) { $0.uplinkShare } }
  }

  /// Lets the layers of a link rise at once, since it now takes another path.
  mutating func pathChanged(of link: LinkID) {
    _ = sessions.update(link) { $0.call?.outgoing.pathChanged() }
  }

  /// The bandwidth that lets the peer get all that it requests, or its share of the uplink, in
  /// kbit/s of IP packets.
  func demand(over link: LinkID) -> Int {
    sessions.index(of: link).map { index in
      sessions.read(at: index) { min($0.demand(local.streams), $0.uplinkShare ?? .max) }
    } ?? 0
  }

  /// Selects the layer of every stream for every receiver. If the set of selected layers or their
  /// bitrates change, the outputs request the new ones from the host's encoders.
  mutating func selectLayers(at now: Instant) -> [Output] {
    var out: [Output] = []
    for stream in local.streams.ids {
      let layers = local.streams.layers(of: stream)
      let allocation = allocateLayers(of: stream, among: layers, at: now)
      for index in 0..<sessions.count where sessions[at: index].call != nil {
        select(
          allocation.steps[index], of: stream, among: layers, forSessionAt: index, at: now, &out)
      }
      let targets = encoderTargets(of: stream, allocation.bitrates)
      if local.streams.setEncoded(targets, of: stream) {
        out.append(.host(.encode(stream, targets)))
      }
    }
    return out
  }

  /// Allocates the layers of a stream to the receivers; the steps are by the index of the session.
  private func allocateLayers(
    of stream: StreamID, among layers: [VideoLayer], at now: Instant
  ) -> (steps: [LayerStep?], bitrates: [Int?]) {
    let receivers = (0..<sessions.count).map { index in
      sessions.read(at: index) { $0.receiver(of: stream, local.streams, at: now) }
    }
    let allocation = LayerAllocation(
      local.streams.bitrates(of: stream), framesPerSecond: layers.last?.framesPerSecond ?? 0,
      receivers: receivers.compactMap(\.self))
    var steps = allocation.steps[...]
    return (receivers.map { $0 == nil ? nil : steps.removeFirst() }, allocation.bitrates)
  }

  private mutating func select(
    _ step: LayerStep?, of stream: StreamID, among layers: [VideoLayer], forSessionAt index: Int,
    at now: Instant, _ out: inout [Output]
  ) {
    guard let requested = sessions[at: index].requested[stream.index] else { return }
    let prevented = sessions[at: index].call?.outgoingRights[stream]
    let adaptation = local.streams.adaptation
    let limit = sessions[at: index].limit
    let selection = sessions[at: index].call?.outgoing.withStream(stream) {
      $0.select(
        step, for: requested, among: layers, adaptation, limit: limit, prevented: prevented,
        at: now)
    }
    if let change = selection?.change {
      out.append(Self.event(change, .sent, of: stream, sessions.keys[index]))
    }
    notify(of: stream, sessionAt: index, &out)
    guard let layer = selection?.keyframe else { return }
    if cachedFrames(of: stream, layer: layer, forSessionAt: index, at: now) != nil {
      // `provideOwedKeyframe` sends them after the next frame, whose wait shows what the path
      // has room for.
      _ = sessions[at: index].call?.outgoing.update(stream) { $0.oweKeyframe(ofLayer: layer) }
    } else {
      requestKeyframe(of: stream, layer: layer, forSessionAt: index, at: now, &out)
    }
  }

  /// Notifies a receiver of the layer of a stream that it gets, and why, if that has changed.
  mutating func notify(
    of stream: StreamID, sessionAt index: Int, _ out: inout [Output]
  ) {
    let sent = sessions[at: index].call?.outgoing.update(stream) { $0.notification() } ?? nil
    if let sent { out.append(.control([.sentLayer(sent)], over: sessions.keys[index])) }
  }

  /// The layers that receivers get or are about to get. A layer that is left stays as it is, and so
  /// does a bitrate that would hardly change.
  private func encoderTargets(of stream: StreamID, _ bitrates: [Int?]) -> [EncoderTarget] {
    let former = local.streams.encoded(of: stream)
    let temporalLayers = encodedTemporalLayers(of: stream, former)
    return bitrates.indices.filter { temporalLayers[$0] > 0 }.map { layer in
      let last = former.first { $0.layer == layer }?.kilobitsPerSecond
      let next = bitrates[layer] ?? last ?? local.streams.bitrates(of: stream)[layer].target
      let isSimilar = last.map { abs(next - $0) * 100 < $0 * Self.similarPercent } ?? false
      return EncoderTarget(
        layer: layer, kilobitsPerSecond: isSimilar ? last ?? next : next,
        temporalLayers: temporalLayers[layer],
        isQuick: local.streams.adaptation.isEncodingQuickly)
    }
  }

  /// The number of temporal layers to encode of each layer: as many as its receivers request,
  /// whether their paths now have room for them or not; 0 without receivers.
  private func encodedTemporalLayers(of stream: StreamID, _ former: [EncoderTarget]) -> [Int] {
    let layers = local.streams.layers(of: stream)
    var result = [Int](repeating: 0, count: Limits.spatialLayers)
    for index in 0..<sessions.count {
      guard let sent = sessions[at: index].call?.outgoing.layers(of: stream),
        let request = sessions[at: index].requested[stream.index]
      else { continue }
      if let target = sent.target {
        let most = LayerChoice.step(for: request, among: layers).map {
          local.streams.adaptation.limited($0, of: layers.count)
        }
        result[target] = max(result[target], most?.temporalLayers ?? 1)
      }
      if let current = sent.current, current != sent.target {
        let encoded = former.first { $0.layer == current }?.temporalLayers ?? 1
        result[current] = max(result[current], encoded)
      }
    }
    return result
  }
}
