import MusterBase
import MusterCongestion
import MusterCore
import MusterLink
import MusterMedia
import MusterPipeline

/// The internal state of a running node, for `stats.counters` and `muster doctor --node`.
extension MusterNode {
  /// The counters since the start and the current links and queues.
  public func diagnostics() -> NodeReport {
    NodeReport(
      id: id.short, uptime: secondsSinceStart, counters: CounterRecord(counters()),
      links: linkReports(), paths: pathReports(), queues: queues())
  }

  private func linkReports() -> [NodeReport.Link] {
    let inUse = node.statistics(at: now)
    return node.associationPhases(at: now).compactMap { link, phase in
      // A refused association remains known after its channel has been left.
      guard let channel = node.name(of: link.channel) else { return nil }
      let peer = inUse.first { $0.link == link }
      return NodeReport.Link(
        channel: channel, member: link.peer.short, phase: phase.rawValue,
        address: peer?.via == nil ? peer?.address?.description : nil, via: peer?.via?.short,
        rttMs: peer?.roundTrip?.inMilliseconds, lossPercent: peer?.lossPercent ?? 0)
    }
  }

  private func pathReports() -> [NodeReport.Path] {
    node.paths.map { id, path, estimate in
      NodeReport.Path(
        member: id.peer.short, address: id.route.address?.description, via: id.route.relay?.short,
        inUse: path.usedSince != nil, validation: path.validation(at: now).name,
        rttMs: path.roundTrip?.smoothed.inMilliseconds, estimateKbps: estimate?.rate.kbps,
        queueMs: estimate?.queueDelay.inMilliseconds,
        datagramsOut: path.sent.datagrams, datagramsIn: path.received.datagrams,
        bytesOut: path.sent.bytes, bytesIn: path.received.bytes)
    }
  }

  /// All counters of the engines, sockets and threads, zeros included.
  func counters() -> [CounterRecord.Counter] {
    let engines = node.diagnostics(at: now)
    var sums = CounterSums()
    sums.add("link", engines.link)
    sums.add("discovery", engines.discovery)
    sums.add("relay", engines.relay)
    sums.add("received", receivedTraffic)
    if let rendezvous = engines.rendezvous { sums.add("rendezvous", rendezvous) }
    for gossip in engines.gossip { sums.add("gossip", gossip) }
    for video in engines.video { sums.add("video", video) }
    sums.add("video.packetsRepeated", engines.videoPacketsRepeated)
    for (_, audio) in meters.heard { sums.add("audio", audio.statistics) }
    sums.add("wake", timers.wakes)
    for queue in queues() {
      sums.add("queue.\(queue.name)Dropped", UInt64(clamping: queue.dropped))
    }
    return sums.counters
  }

  private func queues() -> [NodeReport.Queue] {
    var queues: [NodeReport.Queue] = []
    func add(_ name: String, _ level: QueueLevel?) {
      guard let level else { return }
      queues.append(
        NodeReport.Queue(name: name, waiting: level.waiting, dropped: Int(clamping: level.dropped)))
    }
    if let backlog = store?.backlog {
      queues.append(
        NodeReport.Queue(
          name: "store", waiting: backlog.pending, dropped: Int(clamping: backlog.shed)))
    }
    add("playout", media.playout?.queueLevel)
    add("recorder", media.recorder?.queueLevel)
    add("patternMeter", media.meter.queueLevel)
    add("display", media.display?.queueLevel)
    queues += feed.queues
    return queues
  }
}

extension Path.Validation {
  /// The name in JSON.
  fileprivate var name: String {
    switch self {
    case .unvalidated: "unvalidated"
    case .validating: "validating"
    case .validated: "validated"
    case .failed: "failed"
    }
  }
}

/// The sums of counters with equal names, in the order of first occurrence.
struct CounterSums {
  private(set) var counters: [CounterRecord.Counter] = []

  mutating func add(_ prefix: String, _ counters: some CounterSet) {
    for (name, value) in counters.counted { add("\(prefix).\(name)", value) }
  }

  mutating func add(_ name: String, _ value: UInt64) {
    if let index = counters.firstIndex(where: { $0.name == name }) {
      counters[index].value &+= value
    } else {
      counters.append(.init(name, value))
    }
  }
}
