import MusterBase

/// The payload types of this protocol, fixed rather than negotiated: one per stream and layer, so
/// that a receiver can tell them apart before an announcement of streams has arrived.
public enum PayloadType {
  /// Opus (RFC 7587).
  public static let opus: UInt8 = 111
  /// VP8 (RFC 7741), the smallest layer of the camera. The dynamic range of RFC 3551 begins here.
  public static let videoBase: UInt8 = 96

  /// 96 to 107; `layer` must be below `Limits.spatialLayers`.
  public static func video(_ stream: StreamID, layer: Int) -> UInt8 {
    precondition((0..<Limits.spatialLayers).contains(layer))
    return videoBase + UInt8(stream.index * Limits.spatialLayers + layer)
  }

  /// The stream and layer of a payload type, or nil when it is not VP8.
  public static func video(of payloadType: UInt8) -> (stream: StreamID, layer: Int)? {
    guard payloadType >= videoBase else { return nil }
    return VideoIndex.split(Int(payloadType - videoBase))
  }
}

/// The SSRCs under which one node sends to another: audio under the base, video under the numbers
/// that follow. Sums wrap modulo 2^32.
public struct SSRCPlan: Equatable, Sendable {
  /// The SSRC of the audio, and of RTCP feedback. Random for every link and every call.
  public let base: UInt32

  public init(base: UInt32) { self.base = base }

  /// `layer` must be below `Limits.spatialLayers`.
  public func video(_ stream: StreamID, layer: Int) -> UInt32 {
    precondition((0..<Limits.spatialLayers).contains(layer))
    return base &+ 1 &+ UInt32(stream.index * Limits.spatialLayers + layer)
  }

  /// The stream and layer that an SSRC stands for, or nil when it is none of this node's video.
  public func video(of ssrc: UInt32) -> (stream: StreamID, layer: Int)? {
    VideoIndex.split(Int(ssrc &- base &- 1))
  }
}

/// Streams and layers in one count, as payload types and SSRCs have them.
private enum VideoIndex {
  static func split(_ index: Int) -> (stream: StreamID, layer: Int)? {
    let (stream, layer) = index.quotientAndRemainder(dividingBy: Limits.spatialLayers)
    return StreamID(stream).map { ($0, layer) }
  }
}

/// An RTP packet's header (RFC 3550 5.1) with the one header extension used here.
public struct RTPHeader: Equatable, Sendable {
  public var marker: Bool
  public var payloadType: UInt8
  public var sequence: UInt16
  public var timestamp: UInt32
  public var ssrc: UInt32
  /// RFC 6464 client-to-mixer audio level, in -dBov, under extension id 1 (RFC 8285 one-byte form).
  public var audioLevel: UInt8?

  public static let audioLevelExtensionID: UInt8 = 1

  public init(
    marker: Bool, payloadType: UInt8, sequence: UInt16, timestamp: UInt32, ssrc: UInt32,
    audioLevel: UInt8? = nil
  ) {
    self.marker = marker
    self.payloadType = payloadType
    self.sequence = sequence
    self.timestamp = timestamp
    self.ssrc = ssrc
    self.audioLevel = audioLevel
  }

  public func write(to writer: inout Writer) {
    writer.u8(audioLevel == nil ? 0x80 : 0x90)
    writer.u8((marker ? 0x80 : 0) | payloadType & 0x7F)
    writer.u16(sequence)
    writer.u32(timestamp)
    writer.u32(ssrc)
    if let audioLevel {
      writer.u16(0xBEDE)
      writer.u16(1)
      writer.u8(Self.audioLevelExtensionID << 4)  // length field 0 is one byte
      writer.u8(audioLevel & 0x7F)
      writer.u16(0)
    }
  }
}

/// A received RTP packet.
public struct RTPPacket: Equatable, Sendable {
  public var header: RTPHeader
  public var payload: ArraySlice<UInt8>

  public init(header: RTPHeader, payload: ArraySlice<UInt8>) {
    self.header = header
    self.payload = payload
  }

  public func encoded() -> [UInt8] {
    var writer = Writer(capacity: 24 + payload.count)
    header.write(to: &writer)
    writer.append(payload)
    return writer.bytes
  }

  public init(decoding bytes: [UInt8]) throws(WireError) {
    var reader = Reader(bytes)
    let first = try reader.u8()
    guard first >> 6 == 2 else { throw .unsupported }
    let second = try reader.u8()
    header = RTPHeader(
      marker: second & 0x80 != 0, payloadType: second & 0x7F, sequence: try reader.u16(),
      timestamp: try reader.u32(), ssrc: try reader.u32())
    _ = try reader.slice(4 * Int(first & 0x0F))  // contributing sources
    if first & 0x10 != 0 {
      let profile = try reader.u16()
      let block = try reader.slice(4 * Int(try reader.u16()))
      if profile == 0xBEDE { header.audioLevel = try Self.audioLevel(in: block) }
    }
    var end = reader.remaining
    if first & 0x20 != 0 {
      guard let padding = bytes.last, padding > 0, Int(padding) <= end else {
        throw .invalidValue
      }
      end -= Int(padding)
    }
    payload = try reader.slice(end)
  }

  /// RFC 8285 4.2: elements of id 4 bits, length minus one 4 bits; 0 pads, 15 stops.
  private static func audioLevel(in block: ArraySlice<UInt8>) throws(WireError) -> UInt8? {
    var reader = Reader(block)
    while !reader.isAtEnd {
      let head = try reader.u8()
      if head == 0 { continue }
      if head >> 4 == 15 { return nil }
      let value = try reader.slice(Int(head & 15) + 1)
      if head >> 4 == RTPHeader.audioLevelExtensionID, let level = value.first {
        return level & 0x7F
      }
    }
    return nil
  }
}

extension RTPHeader {
  /// The header's bytes, to be sealed in front of a payload that is shared by all links.
  public var encoded: [UInt8] {
    var writer = Writer(capacity: 20)
    write(to: &writer)
    return writer.bytes
  }
}
