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
    var hasChanged = false
    for path in congestion.followUplinkShares(at: now) where shareBandwidth(of: path, at: now) {
      hasChanged = true
    }
    for link in links {
      media.set(isPathNarrow: path(of: link).map(congestion.isNarrow) ?? false, of: link)
    }
    let rate = DataRate(kbps: Double(limit)) * Self.uplinkUse
    congestion.uplink.rate = rate
    let video = max(rate - congestion.unpacedRate(at: now), .zero)
    for link in media.divide(uplink: Int(video.kbps), among: links) {
      limitToUplinkShare(link, at: now)
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
