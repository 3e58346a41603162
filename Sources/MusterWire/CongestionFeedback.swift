import MusterBase

/// A report of which packets of a session have arrived, and when, from which their sender estimates
/// the bandwidth of the path. It has the content of RFC 8888 section 3.1, but names packets by
/// session and packet number, as the acknowledgements of QUIC do, so that it covers all that was
/// sealed and needs no RTP header extension.
public struct CongestionFeedback: Equatable, Sendable {
  /// The arrival of one packet, as a metric block of RFC 8888: bit 15 is set if the packet has
  /// arrived; bits 14 and 13 are for ECN, sent as 0 and ignored; bits 12 to 0 are its age.
  public struct Arrival: Equatable, Sendable {
    /// The resolution of times: 250 µs, so that 13 bits span two seconds.
    public static let unit = Duration.microseconds(250)
    /// The age of packets that arrived longer ago than a block can express.
    private static let tooOld: UInt16 = 0x1FFE
    /// The bits of the age; all of them set mean that the time of arrival is unknown.
    private static let ageMask: UInt16 = 0x1FFF
    private static let received: UInt16 = 0x8000

    let bits: UInt16

    init(bits: UInt16) {
      self.bits = bits & Self.received == 0 ? 0 : bits & (Self.received | Self.ageMask)
    }

    /// A packet that has not arrived.
    public static let missing = Arrival(bits: 0)

    /// A packet that arrived this many units of `unit` before the time of the report.
    public init(age: UInt32) {
      bits = Self.received | UInt16(min(age, UInt32(Self.tooOld)))
    }

    /// Whether the packet has arrived.
    public var isReceived: Bool { bits & Self.received != 0 }

    /// The time from the packet's arrival to the time of the report; nil if the packet has not
    /// arrived, longer ago than a block can express, or at an unknown time.
    public var age: Duration? {
      let age = bits & Self.ageMask
      return isReceived && age < Self.tooOld ? Self.unit * Int(age) : nil
    }
  }

  /// The maximum number of packets in one report, which then fits into a relayed datagram.
  public static let limit = 512

  /// The index of the session whose packets are reported: that of the reporting node, which is in
  /// the header of these packets.
  public let session: UInt32
  /// The number of the first reported packet.
  public let base: UInt64
  /// The time of the report on the reporter's clock, in units of `Arrival.unit`, modulo 2^32.
  public let time: UInt32
  /// The arrivals of the packets with consecutive numbers from `base` on; not empty.
  public let arrivals: [Arrival]

  /// Describes the arrivals of 1 to `limit` packets.
  public init(session: UInt32, base: UInt64, time: UInt32, arrivals: [Arrival]) {
    self.session = session
    self.base = base
    self.time = time
    self.arrivals = arrivals
  }

  private static let headerBytes = 17

  /// Encodes the report. Layout in bytes: payload kind 1, session index 4, base 8, time 4, and for
  /// each packet 2.
  public func encoded() -> [UInt8] {
    var writer = Writer(capacity: Self.headerBytes + 2 * arrivals.count)
    writer.u8(PayloadKind.feedbackByte)
    writer.u32(session)
    writer.u64(base)
    writer.u32(time)
    for arrival in arrivals { writer.u16(arrival.bits) }
    return writer.bytes
  }

  /// Decodes a report; throws for another payload kind, for no or too many packets, for half a
  /// block, and for packet numbers beyond 2^64 - 1.
  public init(decoding payload: [UInt8]) throws(WireError) {
    var reader = Reader(payload)
    guard try reader.u8() == PayloadKind.feedbackByte else { throw .invalidValue }
    session = try reader.u32()
    base = try reader.u64()
    time = try reader.u32()
    guard reader.remaining > 0 else { throw .truncated }
    guard reader.remaining <= 2 * Self.limit else { throw .tooLong }
    var arrivals: [Arrival] = []
    arrivals.reserveCapacity(reader.remaining / 2)
    while !reader.isAtEnd { arrivals.append(Arrival(bits: try reader.u16())) }
    guard !base.addingReportingOverflow(UInt64(arrivals.count - 1)).overflow else {
      throw .invalidValue
    }
    self.arrivals = arrivals
  }
}
