import MusterBase
import MusterCongestion
import MusterLink
import MusterWire

/// The uplink that the paths share.
extension Congestion {
  /// The time without reports after which a path is not taken to carry its share.
  fileprivate static let silence = Duration.seconds(1)
  /// The time within which the queues of paths that share the uplink are seen to grow.
  private static let together = Duration.seconds(1)
  /// The longest interval of reports, and the round trip beyond which none are waited for.
  private static let reportInterval = Duration.milliseconds(250)
  private static let longestRoundTrip = Duration.milliseconds(500)
  /// A path that gets its share is trusted with a little more than it is known to carry; probes
  /// show the rest.
  private static let trust = 1.25
  /// The queue of the uplink that does not call for the paths' own estimates.
  private static let toleratedQueue = Duration.milliseconds(50)
  /// The queueing delay up to which packets on a path do not wait where those on another one do.
  private static let noQueue = Duration.milliseconds(25)

  /// The rate of the packets that do not wait for their turn, on the paths that share the uplink:
  /// audio, reports and control messages.
  func unpacedRate(at now: Instant) -> DataRate {
    paths.keys.indices.reduce(.zero) { sum, index in
      sum + paths.read(at: index) { $0.isApart ? .zero : $0.unpaced.value(at: now) }
    }
  }

  /// Whether packets on a path do not queue where those on the others do, so that it takes another
  /// uplink, such as none at all, to a peer on the LAN.
  func isApart(_ path: PathID) -> Bool {
    paths.index(of: path).map { index in paths.read(at: index) { $0.isApart } } ?? false
  }

  /// Whether packets on another path may wait in the same queue as those on this one: it is in use,
  /// and no report has yet shown that they do not.
  func mayShareQueue(_ path: PathID, at now: Instant) -> Bool {
    guard paths.count > 1, let own = paths.index(of: path) else { return false }
    let since = paths.read(at: own) { $0.controller.queuesSince }
    return paths.keys.indices.contains { index in
      guard index != own else { return false }
      return paths.read(at: index) { entry in
        guard entry.isReported(at: now), !entry.isApart else { return false }
        guard let since, let until = entry.controller.reportedUntil, until >= since,
          let queue = entry.controller.queueDelay
        else { return true }
        return queue > Self.noQueue
      }
    }
  }

  /// Learns what the uplink carries from the paths that were reported not long ago; nothing while
  /// this node is short of CPU, as it then sends later than it says, which looks like a queue.
  mutating func learnUplink(isShortOfCPU: Bool, at now: Instant) {
    var overused = 0
    var believed = DataRate.zero
    var roundTrip = Duration.zero
    for index in paths.keys.indices {
      paths.read(at: index) { entry in
        guard entry.isReported(at: now), !entry.isFlowing(at: now) else { return }
        if entry.grewAt.map({ now - $0 < Self.together }) ?? false { overused += 1 }
        believed = believed + entry.controller.estimate
        roundTrip = max(roundTrip, entry.controller.roundTrip ?? .zero)
      }
    }
    let settled = now + (.zero - min(roundTrip, Self.longestRoundTrip) - Self.reportInterval)
    let isLearnt = uplinkEstimator.update(
      isOverused: overused > 1 && !isShortOfCPU, believed: believed, settled: settled, at: now)
    for index in paths.keys.indices where isLearnt {
      paths.update(at: index) { $0.isApart = $0.isReported(at: now) && $0.isFlowing(at: now) }
    }
  }

  /// Lets what was learnt of the uplink rise soon, since packets may now take another one.
  mutating func pathsChanged() { uplinkEstimator.pathsChanged() }

  /// Limits the video on a path to its share of the uplink; nil if the uplink is no limit. Packets
  /// leave no faster than that, since otherwise the frames to all receivers would queue at the
  /// uplink at once. An estimate begins with it.
  mutating func set(uplinkShare: DataRate?, on path: PathID, at now: Instant) {
    _ = paths.update(path) { entry in
      entry.uplinkShare = uplinkShare
      if let uplinkShare, entry.controller.isStarting(at: now) {
        entry.controller.limit(to: uplinkShare + entry.unpaced.value(at: now), at: now)
      }
      entry.pace(at: now)
    }
  }

  /// Whether a path itself is taken to carry less than its share of the uplink.
  func isNarrow(_ path: PathID) -> Bool {
    paths.index(of: path).map { index in paths.read(at: index) { $0.isNarrow } } ?? false
  }

  /// Raises the estimates that are below the shares of their paths, unless a path itself carries
  /// less. Returns the paths of which they are raised.
  mutating func followUplinkShares(at now: Instant) -> [PathID] {
    let queues = paths.keys.indices.compactMap { index in
      paths.read(at: index) { $0.uplinkShare == nil ? nil : $0.controller.queueDelay }
    }
    // A longer queue of all paths shows that the uplink, or what all receivers are behind, carries
    // less than the limit.
    let shortest = queues.count > 1 ? min(queues.min() ?? .zero, Self.toleratedQueue) : .zero
    return (0..<paths.count).compactMap { index in
      let isRaised = paths.update(at: index) { entry in
        guard let share = entry.uplinkShare else { return false }
        let isSilent = entry.reportedAt != nil && !entry.isReported(at: now)
        let isNarrow = isSilent || entry.controller.isNarrow(besideQueue: shortest)
        entry.isNarrow = entry.ownLimit.update(
          isNarrow: isNarrow, isFound: entry.controller.isDraining, at: now)
        let carried = entry.controller.acknowledgedRate.map { $0 * Self.trust }
        let wanted = share + entry.unpaced.value(at: now)
        let rate = min(wanted, carried ?? wanted)
        guard !entry.isNarrow, entry.controller.estimate < rate else { return false }
        entry.controller.raise(to: rate, at: now)
        entry.pace(at: now)
        return true
      }
      return isRaised ? paths.keys[index] : nil
    }
  }
}

extension Congestion.Entry {
  /// The queueing delay below which packets do not count as queueing.
  private static let shortQueue = Duration.milliseconds(10)
  /// The time without a queue after which those of others are no longer this path's, either.
  private static let patience = Duration.seconds(2)

  /// Whether a report has come not long ago.
  func isReported(at now: Instant) -> Bool {
    reportedAt.map { now - $0 <= Congestion.silence } ?? false
  }

  /// Whether packets have not queued for a while.
  func isFlowing(at now: Instant) -> Bool {
    flowsSince.map { now - $0 > Self.patience } ?? false
  }

  /// Notes what a report has shown of the queue.
  mutating func noteQueue(at now: Instant) {
    if controller.isOverused { grewAt = now }
    let isShort = controller.queueDelay.map { $0 < Self.shortQueue } ?? false
    flowsSince = isShort ? flowsSince ?? now : nil
  }
}
