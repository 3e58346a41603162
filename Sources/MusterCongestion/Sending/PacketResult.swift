import MusterBase

/// The fate of a packet, as far as its receiver has reported it.
public struct PacketResult: Equatable, Sendable {
  /// Whether a packet has arrived.
  public enum Fate: Equatable, Sendable {
    /// It arrived at this time on the receiver's clock, whose origin is arbitrary; nil if the
    /// receiver did not say when.
    case arrived(at: Instant?)
    /// It has not arrived, and later ones have. It may still do so, and is then reported again.
    case lost
    /// It was reported as lost, and has arrived after all.
    case arrivedLate
  }

  /// The bytes of the IP packet.
  public let bytes: Int
  public let sentAt: Instant
  /// The class with which it was sent, whether or not its IP header says so.
  public let serviceClass: ServiceClass
  /// The probe cluster that it belongs to, if any.
  public let probe: ProbeCluster.ID?
  public let fate: Fate

  /// Describes a packet.
  public init(
    bytes: Int, sentAt: Instant, serviceClass: ServiceClass = .video,
    probe: ProbeCluster.ID? = nil, fate: Fate
  ) {
    self.bytes = bytes
    self.sentAt = sentAt
    self.serviceClass = serviceClass
    self.probe = probe
    self.fate = fate
  }

  /// The time of arrival on the receiver's clock, if it is known.
  var arrivedAt: Instant? {
    if case .arrived(let at) = fate { at } else { nil }
  }
}

/// The news about one route in a report.
public struct PathReport: Equatable, Sendable {
  public let route: Route
  /// The packets whose fate is new, in the order of sending; not empty.
  public internal(set) var results: [PacketResult]
  /// Whether the packets before these are in no report, since one was lost.
  public internal(set) var isAfterGap: Bool
  /// The time from the sending of a packet to this report, without the time for which the receiver
  /// held it back; nil if no packet's arrival is new.
  public internal(set) var roundTrip: Duration?

  /// Describes the news.
  public init(
    route: Route, results: [PacketResult], isAfterGap: Bool = false, roundTrip: Duration? = nil
  ) {
    self.route = route
    self.results = results
    self.isAfterGap = isAfterGap
    self.roundTrip = roundTrip
  }
}
