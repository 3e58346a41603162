import MusterBase
import MusterDevices

/// The format in which a stream is offered: that of its source, then that of its frames. Frames
/// change it at most once a second, because every change is told to all members; meanwhile they are
/// scaled.
package struct FormatFollower: Sendable {
  /// The minimum time between changes by frames.
  package static let interval = Duration.seconds(1)

  /// The format that others know; nil without a source.
  package private(set) var offered: VideoFormat?
  private var changedAt: Instant?

  /// Offers nothing.
  package init() {}

  /// Offers the format of another source, or none; false if that is no change. Frames of the former
  /// source may still come.
  package mutating func replace(with format: VideoFormat?, at now: Instant) -> Bool {
    defer { (offered, changedAt) = (format, now) }
    return format != offered
  }

  /// Takes the format of the next frame; false if what is offered stays.
  package mutating func take(_ format: VideoFormat, at now: Instant) -> Bool {
    guard format != offered, changedAt.map({ now - $0 >= Self.interval }) ?? true else {
      return false
    }
    (offered, changedAt) = (format, now)
    return true
  }
}
