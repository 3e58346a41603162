import MusterBase
import MusterChannel
import MusterCongestion
import MusterCore
import MusterMedia
import MusterPipeline
import MusterSystem
import MusterWire

/// The values at the previous measurement, from which the next rates are computed.
struct Meters {
  var at: Instant?
  var cpuNanoseconds: Int64 = 0
  var bytesSent: UInt64 = 0
  var media: PeerTable<MemberStream, (sent: UInt64, received: UInt64)> = PeerTable()
  /// The payload bytes relayed for each pair of members since relaying for the pair began.
  var relayed: [RelayedPair] = []
  /// The audio of the participants, kept while one of them cannot be reached.
  var heard: PeerTable<LinkID, HeardAudio> = PeerTable()
  /// The last route of each link, to log a change.
  var paths: [LinkID: LinkPath] = [:]

  mutating func forget(_ link: LinkID) {
    paths[link] = nil
    for stream in StreamID.all { forget(MemberStream(link, stream)) }
  }

  /// Changes what is known of a participant's audio. With as many participants as there can be
  /// links, those are forgotten that cannot be reached: they need not come back.
  mutating func heard(_ link: LinkID, _ change: (inout HeardAudio) -> Void) {
    if heard[link] == nil {
      if heard.count >= Limits.links {
        for other in heard.filter(\.value.isInterrupted).map(\.key) { heard[other] = nil }
      }
      heard[link] = HeardAudio()
    }
    _ = heard.update(link, change)
  }

  /// Forgets the audio of a call that has ended for this node.
  mutating func forgetHeard(in channel: ChannelID) {
    for link in heard.keys where link.channel == channel { heard[link] = nil }
  }

  mutating func forget(_ stream: MemberStream) {
    media[stream] = nil
  }
}

extension MusterNode {
  func emitStatistics() {
    emit(.statistics(measure()))
    reportOwnChanges()
  }

  private func measure() -> Statistics {
    let seconds = meters.at.map { (now - $0).inSeconds } ?? (now - readyAt).inSeconds
    let span = max(seconds, 0.001)
    let cpu = ProcessUsage.cpuNanoseconds
    let sent = sockets.bytesSent
    let peers = node.statistics(at: now)
    for stream in meters.media.keys where !peers.contains(where: { $0.link == stream.link }) {
      meters.forget(stream.link)
    }
    let result = Statistics(
      cpu: Double(cpu - meters.cpuNanoseconds) / 1e9 / span,
      residentMegabytes: ProcessUsage.residentMegabytes,
      uplinkKilobitsPerSecond: Double(sent - meters.bytesSent) * 8 / 1000 / span,
      uplinkLimitKilobitsPerSecond: node.uplinkLimit,
      peers: peers.map { peer($0, over: span) }, relayed: relayed(over: span),
      counters: counters())
    logPaths(peers)
    meters.at = now
    meters.cpuNanoseconds = cpu
    meters.bytesSent = sent
    return result
  }

  private func relayed(over seconds: Double) -> [Statistics.Relayed] {
    let before = meters.relayed
    meters.relayed = node.relayedPairs(at: now)
    return meters.relayed.map { pair in
      let then = before.first {
        $0.channel == pair.channel && $0.first == pair.first && $0.second == pair.second
      }
      let bytes = pair.bytes >= then?.bytes ?? 0 ? pair.bytes - (then?.bytes ?? 0) : pair.bytes
      return Statistics.Relayed(
        channel: node.name(of: pair.channel) ?? "", members: [pair.first, pair.second],
        kilobitsPerSecond: Double(bytes) * 8 / 1000 / seconds)
    }
  }

  private func peer(_ peer: PeerStatistics, over seconds: Double) -> Statistics.Peer {
    let link = peer.link
    let camera = stream(
      StreamStatistics(stream: .camera, sent: peer.sent, received: peer.received), of: link,
      heard: meters.heard[link], over: seconds)
    return Statistics.Peer(
      channel: node.name(of: link.channel) ?? "", member: link.peer, via: peer.via,
      roundTrip: peer.roundTrip, lossPercent: peer.lossPercent,
      estimatedKilobitsPerSecond: peer.estimate?.rate.kbps,
      queueingDelay: peer.estimate?.queueDelay, sent: camera.sent, received: camera.received,
      latency: camera.latency,
      streams: peer.streams.map { stream($0, of: link, heard: nil, over: seconds) })
  }

  private func stream(
    _ stream: StreamStatistics, of link: LinkID, heard: HeardAudio?, over seconds: Double
  ) -> Statistics.Stream {
    let key = MemberStream(link, stream.stream)
    let before = meters.media[key] ?? (0, 0)
    let sent = stream.sent?.bytes ?? 0
    let received = stream.received?.bytes ?? 0
    meters.media[key] = (sent, received)
    func rate(_ now: UInt64, _ then: UInt64) -> Double {
      now >= then ? Double(now - then) * 8 / 1000 / seconds : 0
    }
    return Statistics.Stream(
      name: name(of: stream.stream, of: link.peer, in: link.channel),
      sent: stream.sent.map { direction($0, rate(sent, before.sent), heard: nil) },
      received: stream.received.map {
        direction($0, rate(received, before.received), heard: heard)
      },
      latency: media.meter.latency(of: key).map { ($0.p50, $0.p95) })
  }

  private func direction(
    _ media: MediaStatistics, _ kilobitsPerSecond: Double, heard: HeardAudio?
  ) -> Statistics.Direction {
    Statistics.Direction(
      layer: media.layer, kilobitsPerSecond: kilobitsPerSecond, frames: media.frames,
      framesLost: media.framesLost, freezes: media.freezes,
      totalFreezesDuration: media.totalFreezesDuration,
      audioLostPercent: heard?.lostPercent ?? 0,
      recentAudioLostPercent: heard?.recentLostPercent ?? 0, why: media.why.name)
  }
}
