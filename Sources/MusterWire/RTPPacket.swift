import MusterBase

/// The RTP payload types: one fixed type per stream and layer, so that a receiver can identify both
/// before it has the sender's presence.
public enum PayloadType {
  /// The payload type of Opus (RFC 7587).
  public static let opus: UInt8 = 111
  /// The payload type of Opus with copies of earlier packets: see `RedundantAudio`.
  public static let redundantAudio: UInt8 = 112
  /// The payload type of VP8 (RFC 7741) in the camera's smallest layer; the first of the dynamic
  /// range (RFC 3551).
  public static let videoBase: UInt8 = 96

  /// The payload type of a video layer, 96 to 107; `layer` must be below `Limits.spatialLayers`.
  public static func video(_ stream: StreamID, layer: Int) -> UInt8 {
    precondition((0..<Limits.spatialLayers).contains(layer))
    return videoBase + UInt8(stream.index * Limits.spatialLayers + layer)
  }

  /// Whether a payload type is one of audio.
  public static func isAudio(_ payloadType: UInt8) -> Bool {
    payloadType == opus || payloadType == redundantAudio
  }

  /// The stream and layer of a payload type; nil for types that are not VP8.
  public static func video(of payloadType: UInt8) -> (stream: StreamID, layer: Int)? {
    guard payloadType >= videoBase else { return nil }
    return VideoIndex.split(Int(payloadType - videoBase))
  }
}

/// The SSRCs that one node uses towards another: the base for audio, the following numbers for
/// video, modulo 2^32.
public struct SSRCPlan: Equatable, Sendable {
  /// The SSRC of audio and of RTCP feedback, random for each link and each call.
  public let base: UInt32

  /// `base` should be random (RFC 3550 section 8).
  public init(base: UInt32) { self.base = base }

  /// The SSRC of a video layer; `layer` must be below `Limits.spatialLayers`.
  public func video(_ stream: StreamID, layer: Int) -> UInt32 {
    precondition((0..<Limits.spatialLayers).contains(layer))
    return base &+ 1 &+ UInt32(stream.index * Limits.spatialLayers + layer)
  }

  /// The stream and layer of an SSRC; nil for an SSRC that is not one of this sender's video SSRCs.
  public func video(of ssrc: UInt32) -> (stream: StreamID, layer: Int)? {
    VideoIndex.split(Int(ssrc &- base &- 1))
  }
}

/// The combined index of stream and layer in payload types and SSRCs.
private enum VideoIndex {
  static func split(_ index: Int) -> (stream: StreamID, layer: Int)? {
    let (stream, layer) = index.quotientAndRemainder(dividingBy: Limits.spatialLayers)
    return StreamID(stream).map { ($0, layer) }
  }
}

/// An RTP header (RFC 3550 section 5.1) with the audio level extension.
public struct RTPHeader: Equatable, Sendable {
  /// The marker bit; for video, set in the last packet of a frame (RFC 7741 section 4.1).
  public var marker: Bool
  /// The payload type: see `PayloadType`.
  public var payloadType: UInt8
  /// The sequence number, which increases by one with every packet of an SSRC on a link.
  public var sequence: UInt16
  /// The timestamp in units of the stream's RTP clock: 90 kHz for video, 48 kHz for audio.
  public var timestamp: UInt32
  /// The synchronisation source: see `SSRCPlan`.
  public var ssrc: UInt32
  /// The client-to-mixer audio level in -dBov, 0 to 127 (RFC 6464), sent in a one-byte header
  /// extension (RFC 8285); nil without the extension.
  public var audioLevel: UInt8?

  /// The RFC 8285 ID of the audio level extension (RFC 6464).
  public static let audioLevelExtensionID: UInt8 = 1

  /// Without `audioLevel` the header has no extension.
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

  /// The length of the encoded header in bytes: 12, or 20 with an audio level.
  public var encodedBytes: Int { audioLevel == nil ? 12 : 20 }

  /// Writes the header into `buffer`, which must have at least `encodedBytes` bytes.
  public func write(into buffer: UnsafeMutableRawBufferPointer) {
    buffer[0] = audioLevel == nil ? 0x80 : 0x90
    buffer[1] = (marker ? 0x80 : 0) | payloadType & 0x7F
    buffer.storeBytes(of: sequence.bigEndian, toByteOffset: 2, as: UInt16.self)
    buffer.storeBytes(of: timestamp.bigEndian, toByteOffset: 4, as: UInt32.self)
    buffer.storeBytes(of: ssrc.bigEndian, toByteOffset: 8, as: UInt32.self)
    guard let audioLevel else { return }
    buffer.storeBytes(of: UInt16(0xBEDE).bigEndian, toByteOffset: 12, as: UInt16.self)
    buffer.storeBytes(of: UInt16(1).bigEndian, toByteOffset: 14, as: UInt16.self)
    buffer[16] = Self.audioLevelExtensionID << 4  // a length field of 0 means one byte of data
    buffer[17] = audioLevel & 0x7F
    buffer.storeBytes(of: 0, toByteOffset: 18, as: UInt16.self)
  }

  /// The encoded header.
  public var encoded: [UInt8] {
    [UInt8](unsafeUninitializedCapacity: encodedBytes) { buffer, used in
      write(into: UnsafeMutableRawBufferPointer(buffer))
      used = encodedBytes
    }
  }
}

/// An RTP packet (RFC 3550 section 5.1).
public struct RTPPacket: Equatable, Sendable {
  /// The header of the packet.
  public var header: RTPHeader
  /// The payload without padding.
  public var payload: ArraySlice<UInt8>

  /// Describes a packet without padding.
  public init(header: RTPHeader, payload: ArraySlice<UInt8>) {
    self.header = header
    self.payload = payload
  }

  /// Encodes header and payload.
  public func encoded() -> [UInt8] {
    header.encoded + payload
  }

  /// Decodes a packet; throws for an RTP version other than 2, truncated input and malformed
  /// extensions or padding.
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

  /// Finds the audio level in the block of header extensions. Each element starts with a 4-bit ID
  /// and a 4-bit data length minus one; ID 0 is padding, and ID 15 ends the block (RFC 8285 section
  /// 4.2).
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
