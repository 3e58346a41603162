import MusterBase

/// An RTCP packet: a report (RFC 3550 section 6.4), NACK or PLI (RFC 4585 sections 6.2 and 6.3),
/// sent in reduced-size compounds (RFC 5506).
public enum RTCPPacket: Equatable, Sendable {
  /// A sender report (SR).
  case senderReport(SenderReport)
  /// A receiver report (RR).
  case receiverReport(ssrc: UInt32, reports: [ReportBlock])
  /// A generic NACK, which requests retransmission of these packets of the SSRC `media`.
  case nack(sender: UInt32, media: UInt32, sequences: [UInt16])
  /// A picture loss indication (PLI), which requests a keyframe from the SSRC `media`.
  case pictureLoss(sender: UInt32, media: UInt32)

  private enum PacketType {
    static let senderReport: UInt8 = 200
    static let receiverReport: UInt8 = 201
    static let transportFeedback: UInt8 = 205
    static let payloadFeedback: UInt8 = 206
  }

  /// The maximum number of report blocks in one packet, whose count field has 5 bits.
  public static let maximumReports = 31

  /// Encodes the packets as one compound.
  public static func encode(_ packets: [RTCPPacket]) -> [UInt8] {
    var writer = Writer(capacity: 128)
    for packet in packets { packet.write(to: &writer) }
    return writer.bytes
  }

  private func write(to writer: inout Writer) {
    switch self {
    case .senderReport(let report):
      precondition(report.reports.count <= Self.maximumReports)
      Self.header(
        &writer, report.reports.count, PacketType.senderReport, 6 + 6 * report.reports.count)
      writer.u32(report.ssrc)
      writer.u64(report.ntpTime)
      writer.u32(report.rtpTime)
      writer.u32(report.packets)
      writer.u32(report.octets)
      for block in report.reports { block.write(to: &writer) }
    case .receiverReport(let ssrc, let reports):
      precondition(reports.count <= Self.maximumReports)
      Self.header(&writer, reports.count, PacketType.receiverReport, 1 + 6 * reports.count)
      writer.u32(ssrc)
      for block in reports { block.write(to: &writer) }
    case .nack(let sender, let media, let sequences):
      let pairs = Self.nackPairs(sequences)
      Self.header(&writer, 1, PacketType.transportFeedback, 2 + pairs.count)
      writer.u32(sender)
      writer.u32(media)
      for (first, mask) in pairs {
        writer.u16(first)
        writer.u16(mask)
      }
    case .pictureLoss(let sender, let media):
      Self.header(&writer, 1, PacketType.payloadFeedback, 2)
      writer.u32(sender)
      writer.u32(media)
    }
  }

  private static func header(_ writer: inout Writer, _ count: Int, _ type: UInt8, _ words: Int) {
    writer.u8(0x80 | UInt8(count))
    writer.u8(type)
    writer.u16(UInt16(words))
  }

  /// Pairs of a packet ID (PID) and a bit mask of the 16 sequence numbers after that packet (BLP,
  /// RFC 4585 section 6.2.1).
  private static func nackPairs(_ sequences: [UInt16]) -> [(UInt16, UInt16)] {
    var pairs: [(UInt16, UInt16)] = []
    for sequence in sequences {
      if let last = pairs.last {
        let distance = sequence &- last.0
        if distance == 0 { continue }
        if distance <= 16 {
          pairs[pairs.count - 1].1 |= 1 << (distance - 1)
          continue
        }
      }
      pairs.append((sequence, 0))
    }
    return pairs
  }

  /// Decodes the packets of a compound and skips unknown types; throws for an RTP version other
  /// than 2, truncated input and NACKs of more than `Limits.nackEntries` sequence numbers.
  public static func decode(_ bytes: [UInt8]) throws(WireError) -> [RTCPPacket] {
    var reader = Reader(bytes)
    var packets: [RTCPPacket] = []
    while !reader.isAtEnd {
      let first = try reader.u8()
      guard first >> 6 == 2 else { throw .unsupported }
      let type = try reader.u8()
      let body = try reader.slice(4 * Int(try reader.u16()))
      let count = Int(first & 0x1F)
      if let packet = try Self.parse(type: type, count: count, body: body) {
        packets.append(packet)
      }
    }
    return packets
  }

  private static func parse(
    type: UInt8, count: Int, body: ArraySlice<UInt8>
  ) throws(WireError) -> RTCPPacket? {
    var reader = Reader(body)
    switch type {
    case PacketType.senderReport:
      var report = SenderReport(
        ssrc: try reader.u32(), ntpTime: try reader.u64(), rtpTime: try reader.u32(),
        packets: try reader.u32(), octets: try reader.u32(), reports: [])
      for _ in 0..<count { report.reports.append(try ReportBlock(reading: &reader)) }
      return .senderReport(report)
    case PacketType.receiverReport:
      let ssrc = try reader.u32()
      var reports: [ReportBlock] = []
      for _ in 0..<count { reports.append(try ReportBlock(reading: &reader)) }
      return .receiverReport(ssrc: ssrc, reports: reports)
    case PacketType.transportFeedback where count == 1:
      let sender = try reader.u32()
      let media = try reader.u32()
      var sequences: [UInt16] = []
      while !reader.isAtEnd {
        let first = try reader.u16()
        let mask = try reader.u16()
        sequences.append(first)
        for bit in 0..<16 where mask >> UInt16(bit) & 1 == 1 {
          sequences.append(first &+ UInt16(bit) &+ 1)
        }
        guard sequences.count <= Limits.nackEntries else { throw .tooLong }
      }
      return .nack(sender: sender, media: media, sequences: sequences)
    case PacketType.payloadFeedback where count == 1:
      return .pictureLoss(sender: try reader.u32(), media: try reader.u32())
    default: return nil
    }
  }
}

/// A sender report (RFC 3550 section 6.4.1).
public struct SenderReport: Equatable, Sendable {
  /// The SSRC of the reported stream.
  public var ssrc: UInt32
  /// The time of the report on the sender's media clock (boot time plus a random offset), in NTP
  /// format (seconds and 32 bits of fraction). It is not wall time: receivers only compare times of
  /// one sender with each other, and a wall clock may jump.
  public var ntpTime: UInt64
  /// The instant of `ntpTime`, in units of the stream's RTP clock.
  public var rtpTime: UInt32
  /// The number of packets sent so far, modulo 2^32.
  public var packets: UInt32
  /// The number of payload octets sent so far, modulo 2^32.
  public var octets: UInt32
  /// Report blocks about streams received from the other node.
  public var reports: [ReportBlock]

  /// `ntpTime` and `rtpTime` denote the same instant; `packets` and `octets` are modulo 2^32.
  public init(
    ssrc: UInt32, ntpTime: UInt64, rtpTime: UInt32, packets: UInt32, octets: UInt32,
    reports: [ReportBlock]
  ) {
    self.ssrc = ssrc
    self.ntpTime = ntpTime
    self.rtpTime = rtpTime
    self.packets = packets
    self.octets = octets
    self.reports = reports
  }
}

/// A reception report block (RFC 3550 section 6.4.1).
public struct ReportBlock: Equatable, Sendable {
  /// The SSRC of the reported stream.
  public var ssrc: UInt32
  /// The share of packets lost since the previous report, in 1/256.
  public var fractionLost: UInt8
  /// The number of packets lost since the start of reception; clamped to 24 bits (two's complement)
  /// on the wire.
  public var cumulativeLost: Int32
  /// The extended highest sequence number received: 16 bits of cycles, 16 bits of sequence number.
  public var highestSequence: UInt32
  /// The interarrival jitter in RTP timestamp units.
  public var jitter: UInt32
  /// The middle 32 bits of the NTP time in the last sender report (LSR); 0 before the first sender
  /// report.
  public var lastReport: UInt32
  /// The time since the arrival of the last sender report (DLSR), in 1/65536 s.
  public var delaySinceLastReport: UInt32

  /// `fractionLost` is in 1/256, `jitter` in timestamp units, the delay in 1/65536 s (RFC 3550
  /// section 6.4.1).
  public init(
    ssrc: UInt32, fractionLost: UInt8, cumulativeLost: Int32, highestSequence: UInt32,
    jitter: UInt32, lastReport: UInt32, delaySinceLastReport: UInt32
  ) {
    self.ssrc = ssrc
    self.fractionLost = fractionLost
    self.cumulativeLost = cumulativeLost
    self.highestSequence = highestSequence
    self.jitter = jitter
    self.lastReport = lastReport
    self.delaySinceLastReport = delaySinceLastReport
  }

  func write(to writer: inout Writer) {
    writer.u32(ssrc)
    let clamped = min(max(cumulativeLost, -0x80_0000), 0x7F_FFFF)
    writer.u32(UInt32(fractionLost) << 24 | UInt32(bitPattern: clamped) & 0xFF_FFFF)
    writer.u32(highestSequence)
    writer.u32(jitter)
    writer.u32(lastReport)
    writer.u32(delaySinceLastReport)
  }

  init(reading reader: inout Reader) throws(WireError) {
    ssrc = try reader.u32()
    fractionLost = try reader.u8()
    let lost = try reader.u24()
    cumulativeLost = Int32(bitPattern: lost << 8) >> 8
    highestSequence = try reader.u32()
    jitter = try reader.u32()
    lastReport = try reader.u32()
    delaySinceLastReport = try reader.u32()
  }
}
