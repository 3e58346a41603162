import Foundation
import MusterBase
import MusterWire
import Testing

/// Values of every kind, drawn from a seed.
struct Samples {
  var random: PRNG

  init(seed: UInt64) { random = PRNG(seed: seed) }

  mutating func bit() -> Bool { random.chance(0.5) }
  mutating func u8() -> UInt8 { UInt8(truncatingIfNeeded: random.next()) }
  mutating func u16() -> UInt16 { UInt16(truncatingIfNeeded: random.next()) }
  mutating func u32() -> UInt32 { UInt32(truncatingIfNeeded: random.next()) }
  mutating func u64() -> UInt64 { random.next() }

  mutating func key() -> Bytes32 { Bytes32(random.bytes(32)) ?? .zero }
  mutating func node() -> NodeID { NodeID(key()) }
  mutating func bytes(upTo count: Int) -> [UInt8] { random.bytes(random.below(count + 1)) }

  mutating func address() -> Address {
    let host: Address.Host = bit() ? .v4(u32()) : .v6(high: u64(), low: u64(), zone: 0)
    return Address(host: host, port: u16())
  }

  mutating func name() -> String {
    let letters = Array("aB9 åß€🧑\u{0}\u{202E}")
    var name = ""
    for _ in 0..<random.below(20) {
      let next = letters[random.below(letters.count)]
      if (name + String(next)).utf8.count <= Limits.nameBytes { name.append(next) }
    }
    return name
  }

  mutating func announcement() -> Announcement {
    Announcement(
      author: node(), bootID: u64(), counter: u64(),
      echo: bit() ? random.bytes(Announcement.echoBytes) : nil,
      addresses: (0..<random.below(Limits.addresses + 1)).map { _ in address() })
  }

  mutating func challenge() -> Challenge {
    Challenge(
      target: node(), bootID: u64(), counter: u64(), echo: random.bytes(Announcement.echoBytes))
  }

  mutating func call() -> CallID { CallID(high: u64(), low: u64()) }

  mutating func control() -> Control {
    switch random.below(15) {
    case 0: .entry(bytes(upTo: 300))
    case 1: .entriesReceived(ids(Control.idLimit))
    case 2: .subscribe(subscription())
    case 3: .ping(u64())
    case 4: .pong(u64())
    case 5: .digest(DocumentDigest(count: u32(), sum: key()))
    case 6: .ranges((0..<random.below(5)).map { _ in range() })
    case 7: .want(ids(Control.idLimit))
    case 8: .probe(node(), token: u64())
    case 9: .probed(node(), token: u64(), answered: bit())
    case 10: .epochKey(random.bytes(32), entry: bytes(upTo: 300))
    case 11: .seen(address())
    case 12: .candidates((0..<random.below(Limits.addresses + 1)).map { _ in address() })
    case 13: .sentLayer(sentLayer())
    default: .refused(Refusal(rawValue: u8() % 6) ?? .unknown)
    }
  }

  mutating func stream() -> StreamID { StreamID.all[random.below(StreamID.all.count)] }

  mutating func subscription() -> Subscription {
    let rate = bit() ? VideoRequest.anyRate : u8()
    return Subscription(
      stream(),
      VideoRequest(
        width: u16(), height: u16(), framesPerSecond: rate, why: bit() ? .requested : .rank))
  }

  mutating func sentLayer() -> SentLayer {
    let layer = VideoLayer(
      size: VideoSize(width: Int(u16() | 1), height: Int(u16() | 1)), framesPerSecond: Int(u8()))
    let reason = LayerReason.allCases[random.below(LayerReason.allCases.count)]
    return SentLayer(stream(), bit() ? layer : nil, why: reason)
  }

  mutating func ids(_ limit: Int) -> [UInt64] { (0..<random.below(limit + 1)).map { _ in u64() } }

  mutating func range() -> RangeSummary {
    RangeSummary(
      depth: UInt8(random.below(61)), prefix: u64(),
      content: bit()
        ? .fingerprint(random.bytes(RangeSummary.fingerprintBytes))
        : .ids(ids(RangeSummary.idLimit)))
  }

  mutating func path() -> PathMessage {
    switch random.below(3) {
    case 0: .challenge(u64())
    case 1: .response(u64())
    default: .close
    }
  }

  mutating func redundantAudio() -> RedundantAudio {
    let copies = (0..<random.below(RedundantAudio.copyLimit)).map { _ in
      RedundantAudio.Copy(
        timestampOffset: UInt16(random.below(Int(RedundantAudio.largestOffset) + 1)),
        payload: random.bytes(random.below(RedundantAudio.largestCopy + 1))[...])
    }
    return RedundantAudio(copies: copies, primary: random.bytes(random.below(300))[...])
  }

  mutating func rtp() -> RTPPacket {
    RTPPacket(
      header: RTPHeader(
        marker: bit(), payloadType: u8() & 0x7F, sequence: u16(), timestamp: u32(), ssrc: u32(),
        audioLevel: bit() ? u8() & 0x7F : nil),
      payload: bytes(upTo: Limits.rtpPayloadBytes)[...])
  }

  mutating func descriptor() -> VP8Descriptor {
    VP8Descriptor(
      isNonReference: bit(), isFrameStart: bit(), pictureID: u16() & 0x7FFF, tl0PicIdx: u8(),
      temporalLayer: u8() & 3, isLayerSync: bit(), keyIndex: u8() & 0x1F)
  }

  mutating func reportBlock() -> ReportBlock {
    ReportBlock(
      ssrc: u32(), fractionLost: u8(), cumulativeLost: Int32(bitPattern: u32()) >> 8,
      highestSequence: u32(), jitter: u32(), lastReport: u32(), delaySinceLastReport: u32())
  }

  mutating func feedback() -> CongestionFeedback {
    let arrivals = (0..<(1 + random.below(CongestionFeedback.limit))).map { _ in
      random.below(4) == 0
        ? CongestionFeedback.Arrival.missing : .init(age: UInt32(random.below(0x2100)))
    }
    return CongestionFeedback(
      session: u32(), base: u64() >> 1, time: u32(), arrivals: arrivals)
  }

  mutating func rtcp() -> RTCPPacket {
    func reports(_ count: Int) -> [ReportBlock] { (0..<count).map { _ in reportBlock() } }
    switch random.below(4) {
    case 0:
      return .senderReport(
        SenderReport(
          ssrc: u32(), ntpTime: u64(), rtpTime: u32(), packets: u32(), octets: u32(),
          reports: reports(random.below(RTCPPacket.maximumReports + 1))))
    case 1: return .receiverReport(ssrc: u32(), reports: reports(random.below(5)))
    case 2: return .nack(sender: u32(), media: u32(), sequences: missing())
    default: return .pictureLoss(sender: u32(), media: u32())
    }
  }

  /// Missing sequence numbers as a receiver lists them: in ascending order, modulo 2^16.
  mutating func missing() -> [UInt16] {
    var sequence = u16()
    return (0..<(1 + random.below(Limits.nackEntries))).map { _ in
      sequence &+= UInt16(1 + random.below(40))
      return sequence
    }
  }

  /// A copy of `bytes` with a few bytes changed, removed, repeated or inserted.
  mutating func mutated(_ bytes: [UInt8]) -> [UInt8] {
    var result = bytes
    for _ in 0...random.below(4) {
      let index = random.below(result.count + 1)
      switch random.below(5) {
      case 0 where index < result.count: result[index] = u8()
      case 1 where index < result.count: result[index] ^= 1 << UInt8(random.below(8))
      case 2: result = Array(result.prefix(index))
      case 3: result.insert(contentsOf: self.bytes(upTo: 8), at: index)
      default: result.append(contentsOf: result.suffix(index))
      }
    }
    return Array(result.prefix(Limits.datagramBytes))
  }
}

/// The packets of other implementations in `Tests/Vectors/rtp`.
enum Vectors {
  static let folder = URL(filePath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().appending(path: "Vectors/rtp")

  static func bytes(_ path: String) throws -> [UInt8] {
    [UInt8](try Data(contentsOf: folder.appending(path: path)))
  }

  static func text(_ path: String) throws -> String {
    try String(contentsOf: folder.appending(path: path), encoding: .utf8)
  }

  static func names(in path: String, ending: String) throws -> [String] {
    let full = folder.appending(path: path).path(percentEncoded: false)
    return try FileManager.default.contentsOfDirectory(atPath: full)
      .filter { $0.hasSuffix(ending) }.sorted()
  }
}
