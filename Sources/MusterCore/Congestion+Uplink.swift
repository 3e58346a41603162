import MusterBase
import MusterCongestion
import MusterLink
import MusterWire

/// The uplink that the paths share.
extension Congestion {
  /// The time without reports after which a path is not taken to carry its share.
  private static let silence = Duration.seconds(1)
  /// A path that gets its share is trusted with a little more than it is known to carry; probes
  /// show the rest.
  private static let trust = 1.25
  /// The queue of the uplink that does not call for the paths' own estimates.
  private static let toleratedQueue = Duration.milliseconds(50)

  /// The rate of all packets that do not wait for their turn: audio, reports and control messages.
  func unpacedRate(at now: Instant) -> DataRate {
    paths.keys.indices.reduce(.zero) { sum, index in
      sum + paths.read(at: index) { $0.unpaced.value(at: now) }
    }
  }

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
        let isSilent = entry.reportedAt.map { now - $0 > Self.silence } ?? false
        let isNarrow = isSilent || entry.controller.isNarrow(besideQueue: shortest)
        entry.isNarrow = entry.ownLimit.update(isNarrow: isNarrow, at: now)
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
