import MusterBase
import MusterCongestion
import MusterLink
import MusterWire

/// The plan of the uplink, which all paths share.
extension Node {
  /// The share of the uplink that is planned. The rest is for repetitions, and keeps bursts from
  /// queueing.
  private static let uplinkUse = 0.95

  /// Divides the uplink among the receivers of video, after all audio. Returns whether a share has
  /// changed.
  @discardableResult
  mutating func planUplink(at now: Instant) -> Bool {
    guard let limit = configuration.uplink else { return false }
    let links = peers.keys.filter { media.isActive($0) }
    congestion.uplink.rate = DataRate(kbps: Double(limit)) * Self.uplinkUse
    let rate = DataRate(kbps: Double(limit)) * Self.uplinkUse - congestion.unpacedRate(at: now)
    let changed = media.divide(uplink: Int(max(rate, .zero).kbps), among: links)
    for link in changed { limitToUplinkShare(link, at: now) }
    var hasChanged = !changed.isEmpty
    for path in congestion.followUplinkShares(at: now) where shareBandwidth(of: path, at: now) {
      hasChanged = true
    }
    return hasChanged
  }

  /// Limits the path of a link to the share of the uplink that the link gets.
  mutating func limitToUplinkShare(_ link: LinkID, at now: Instant) {
    guard let path = path(of: link) else { return }
    let share = media.uplinkShare(of: link).map { DataRate(kbps: Double($0)) }
    congestion.set(uplinkShare: share, on: path, at: now)
    _ = shareBandwidth(of: path, at: now)
  }
}
