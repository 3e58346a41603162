import MusterBase
import MusterCongestion
import MusterLink
import MusterWire

/// The plan of the uplink, which all paths share.
extension Node {
  /// The share of the uplink that is planned. The rest is for repetitions, and keeps bursts from
  /// queueing.
  private static let uplinkUse = 0.95

  /// What this node may send in all, as given or as learnt, in kbit/s of IP packets; nil if no
  /// limit is known.
  public var uplinkLimit: Double? {
    configuration.uplink.map { Double($0) } ?? congestion.uplinkEstimator.rate?.kbps
  }

  /// Divides the uplink among the receivers of video, after all audio. Returns whether a share has
  /// changed.
  @discardableResult
  mutating func planUplink(at now: Instant) -> Bool {
    if configuration.uplink == nil {
      congestion.learnUplink(isShortOfCPU: media.isShortOfCPU, at: now)
    }
    guard uplinkLimit != nil || congestion.uplink.rate != nil else { return false }
    let links = peers.keys.filter { media.isActive($0) }
    let apart = links.filter { path(of: $0).map(congestion.isApart) ?? false }
    let sharing = links.filter { !apart.contains($0) }
    let rate = plannedRate(for: sharing, at: now)
    congestion.uplink.rate = rate
    var hasChanged = false
    for path in congestion.followUplinkShares(at: now) where shareBandwidth(of: path, at: now) {
      hasChanged = true
    }
    for link in links {
      media.set(isPathNarrow: path(of: link).map(congestion.isNarrow) ?? false, of: link)
    }
    let video = rate.map { max($0 - congestion.unpacedRate(at: now), .zero) }
    let changed =
      media.divide(uplink: video.map { Int($0.kbps) }, among: sharing)
      + media.divide(uplink: nil, among: apart)
    for link in changed {
      limitToUplinkShare(link, at: now)
      hasChanged = true
    }
    return hasChanged
  }

  /// The rate that is divided by plan: that which is given, or else that which is learnt, which
  /// grows. Nil if none is known, or there is nobody to share with.
  private mutating func plannedRate(for links: [LinkID], at now: Instant) -> DataRate? {
    if let given = configuration.uplink { return DataRate(kbps: Double(given)) * Self.uplinkUse }
    guard links.count > 1 else { return nil }
    let video = DataRate(kbps: Double(media.uplinkDemand(of: links)))
    congestion.uplinkEstimator.grow(to: video + congestion.unpacedRate(at: now), at: now)
    return congestion.uplinkEstimator.rate
  }

  /// Limits the path of a link to the share of the uplink that the link gets.
  mutating func limitToUplinkShare(_ link: LinkID, at now: Instant) {
    guard let path = path(of: link) else { return }
    let share = media.uplinkShare(of: link).map { DataRate(kbps: Double($0)) }
    congestion.set(uplinkShare: share, on: path, at: now)
    _ = shareBandwidth(of: path, at: now)
  }
}
