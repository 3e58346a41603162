import MusterBase
import MusterWire

/// The marker in synthetic media and names, which must not appear on the network in plaintext.
public enum Marker {
  /// The marker as text: at most eight ASCII letters, because `PlaintextChecker` compares windows
  /// of eight bytes.
  public static let text = "quagga"
  static let bytes = Array(text.utf8)
  static let padding = Array("quagga-".utf8)

  /// Pads the token to `count` bytes, so that any 12 consecutive bytes of padding contain the
  /// marker. The padding begins at offset `phase` of the repeated pattern.
  static func pad(_ writer: inout Writer, to count: Int, phase: UInt32) {
    var index = Int(phase % UInt32(padding.count))
    for _ in 0..<max(count - writer.bytes.count, 0) {
      writer.u8(padding[index])
      index = index + 1 == padding.count ? 0 : index + 1
    }
  }
}

/// The content of a synthetic frame: its sender, its number and the frames that it refers to.
public struct FrameToken: Equatable, Sendable {
  /// The index of the sending node.
  public var sender: UInt8
  /// The number of the sender's process: a restart begins a new run.
  public var run: UInt8
  /// The number of the stream, as in `StreamID.number`.
  public var stream: UInt8
  /// The spatial layer, 0 for the smallest.
  public var layer: UInt8
  /// The temporal layer, 0 to 2; no frame refers to a frame of layer 2.
  public var temporalLayer: UInt8
  /// The serial number of the frame within its layer, from 1.
  public var serial: UInt32
  /// The serial number of the base frame that the frame refers to; 0 for a keyframe.
  public var base: UInt32
  /// The serial number of the frame of temporal layer 1 that the frame also refers to; 0 for none.
  public var golden: UInt32

  /// Serial numbers start at 1, so that 0 in `base` and `golden` means no reference.
  public init(
    sender: UInt8, run: UInt8, stream: UInt8, layer: UInt8, temporalLayer: UInt8, serial: UInt32,
    base: UInt32, golden: UInt32
  ) {
    self.sender = sender
    self.run = run
    self.stream = stream
    self.layer = layer
    self.temporalLayer = temporalLayer
    self.serial = serial
    self.base = base
    self.golden = golden
  }

  /// Whether the frame can be decoded without any other frame.
  public var isKeyframe: Bool { base == 0 }

  /// The encoded frame: the first bytes of a VP8 frame (RFC 6386 section 9.1), the token, and
  /// padding.
  public func frame(size: VideoSize, bytes count: Int) -> [UInt8] {
    var writer = Writer(capacity: count)
    if isKeyframe {
      let (width, height) = (UInt16(clamping: size.width), UInt16(clamping: size.height))
      writer.append([0x10, 0, 0, 0x9D, 0x01, 0x2A] as [UInt8])
      writer.u16(width.byteSwapped)
      writer.u16(height.byteSwapped)
    } else {
      writer.append([0x11, 0, 0] as [UInt8])
    }
    writer.append(Marker.bytes)
    writer.u8(sender)
    writer.u8(run)
    writer.u8(stream)
    writer.u8(layer)
    writer.u8(temporalLayer)
    writer.u32(serial)
    writer.u32(base)
    writer.u32(golden)
    Marker.pad(&writer, to: count, phase: serial)
    return writer.bytes
  }

  /// Reads a frame's token; nil unless the frame is exactly as a source made it.
  public init?(_ frame: [UInt8]) {
    let size = VP8FrameHeader.keyframeSize(frame[...])
    var reader = Reader(Array(frame.dropFirst(VP8FrameHeader.isKeyframe(frame) ? 10 : 3)))
    guard let token = try? Self(reading: &reader) else { return nil }
    self = token
    let size16 = VideoSize(width: size?.width ?? 0, height: size?.height ?? 0)
    guard self.frame(size: size16, bytes: frame.count) == frame else { return nil }
  }

  private init(reading reader: inout Reader) throws(WireError) {
    guard try reader.array(Marker.bytes.count) == Marker.bytes else { throw .invalidValue }
    sender = try reader.u8()
    run = try reader.u8()
    stream = try reader.u8()
    layer = try reader.u8()
    temporalLayer = try reader.u8()
    serial = try reader.u32()
    base = try reader.u32()
    golden = try reader.u32()
  }
}

/// The content of a synthetic audio packet.
public struct AudioToken: Equatable, Sendable {
  /// The packet size in bytes, as for Opus at 32 kbit/s with 20 ms per packet.
  public static let packetBytes = 80
  /// The size of each frame of a long packet, as for Opus at 16 kbit/s.
  public static let longPacketFrameBytes = 40

  /// The index of the sending node.
  public var sender: UInt8
  /// The number of the sender's process, as in `FrameToken.run`.
  public var run: UInt8
  /// The serial number of the packet within its run, from 1.
  public var serial: UInt32

  /// Sender, run and serial together identify one packet of a simulation.
  public init(sender: UInt8, run: UInt8, serial: UInt32) {
    self.sender = sender
    self.run = run
    self.serial = serial
  }

  /// The packet of one frame: the token, followed by padding.
  public var packet: [UInt8] { frame(bytes: Self.packetBytes) }

  /// The token's frame in a long packet.
  public var longPacketFrame: [UInt8] { frame(bytes: Self.longPacketFrameBytes) }

  /// The frames of a packet, one of which each token is read from.
  public static func frames(of packet: [UInt8]) -> [[UInt8]] {
    guard packet.count == longPacketFrameBytes * EncodedAudio.framesPerLongPacket else {
      return [packet]
    }
    return stride(from: 0, to: packet.count, by: longPacketFrameBytes).map {
      Array(packet[$0..<$0 + longPacketFrameBytes])
    }
  }

  private func frame(bytes: Int) -> [UInt8] {
    var writer = Writer(capacity: bytes)
    writer.append(Marker.bytes)
    writer.u8(sender)
    writer.u8(run)
    writer.u32(serial)
    Marker.pad(&writer, to: bytes, phase: serial)
    return writer.bytes
  }

  /// Reads a frame's token; nil unless the frame is exactly as a source made it.
  public init?(_ frame: [UInt8]) {
    var reader = Reader(frame)
    guard let token = try? Self(reading: &reader),
      token.packet == frame || token.longPacketFrame == frame
    else { return nil }
    self = token
  }

  private init(reading reader: inout Reader) throws(WireError) {
    guard try reader.array(Marker.bytes.count) == Marker.bytes else { throw .invalidValue }
    sender = try reader.u8()
    run = try reader.u8()
    serial = try reader.u32()
  }
}
