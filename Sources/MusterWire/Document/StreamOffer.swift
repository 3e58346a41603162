import MusterBase

/// A video stream that a member offers.
///
/// Layout in bytes: number 1, name length 1 and UTF-8, flags 1, count of layers 1 and width 2,
/// height 2, frames per second 1 of each, smallest first.
public struct StreamOffer: Equatable, Hashable, Sendable {
  /// The number of the stream, which determines its payload types and SSRCs.
  public var id: StreamID
  /// The name: `camera`, `screen`, or lower-case letters, digits and hyphens.
  public var name: String
  /// Whether the member is currently not sending this stream.
  public var isMuted: Bool
  /// Whether the frames are the test pattern, which carries frame number and capture time.
  public var isPattern: Bool
  /// The simulcast layers, smallest first; at most `Limits.spatialLayers`.
  public var layers: [VideoLayer]

  /// A nil `name` means the default name of the stream; any other name must be valid
  /// (`isValid(name:)`).
  public init(
    _ id: StreamID, name: String? = nil, isMuted: Bool = false, isPattern: Bool = false,
    layers: [VideoLayer]
  ) {
    self.id = id
    self.name = name ?? id.description
    self.isMuted = isMuted
    self.isPattern = isPattern
    self.layers = layers
  }

  private static let muted: UInt8 = 1 << 0
  private static let pattern: UInt8 = 1 << 1

  /// Whether `name` is a valid stream name. Only a few characters are allowed, because names are
  /// used unescaped in file names, commands and the web page.
  public static func isValid(name: String) -> Bool {
    (1...Limits.streamNameBytes).contains(name.utf8.count)
      && name.utf8.allSatisfy { byte in
        switch byte {
        case 0x61...0x7A, 0x30...0x39, 0x2D: true
        default: false
        }
      }
  }

  func write(to writer: inout Writer) {
    precondition(layers.count <= Limits.spatialLayers && Self.isValid(name: name))
    writer.u8(id.number)
    writer.text(name)
    writer.u8((isMuted ? Self.muted : 0) | (isPattern ? Self.pattern : 0))
    writer.u8(UInt8(layers.count))
    for layer in layers {
      writer.u16(UInt16(clamping: layer.size.width))
      writer.u16(UInt16(clamping: layer.size.height))
      writer.u8(UInt8(clamping: layer.framesPerSecond))
    }
  }

  init(reading reader: inout Reader) throws(WireError) {
    guard let id = StreamID(Int(try reader.u8())) else { throw .tooLong }
    self.id = id
    name = try reader.text(limit: Limits.streamNameBytes)
    guard Self.isValid(name: name) else { throw .invalidValue }
    let flags = try reader.u8()
    isMuted = flags & Self.muted != 0
    isPattern = flags & Self.pattern != 0
    let count = Int(try reader.u8())
    guard count <= Limits.spatialLayers else { throw .tooLong }
    layers = []
    for _ in 0..<count {
      layers.append(
        VideoLayer(
          size: VideoSize(width: Int(try reader.u16()), height: Int(try reader.u16())),
          framesPerSecond: Int(try reader.u8())))
    }
  }
}

/// A simulcast layer that a member offers.
public struct VideoLayer: Equatable, Hashable, Sendable, CustomStringConvertible {
  /// The size of the layer's frames.
  public var size: VideoSize
  /// The frame rate in frames per second, rounded.
  public var framesPerSecond: Int

  /// `size` is in pixels, the rate in frames per second.
  public init(size: VideoSize, framesPerSecond: Int) {
    self.size = size
    self.framesPerSecond = framesPerSecond
  }

  /// The size and the frame rate, such as `640x360@30`.
  public var description: String { "\(size)@\(framesPerSecond)" }
}
