/// A video stream of a member: the camera, the screen, or a further source.
///
/// The number is part of payload types and SSRCs, so that a packet can be assigned to its stream
/// before the sender's presence entry has arrived.
public struct StreamID: Hashable, Comparable, Sendable, CustomStringConvertible {
  /// The stream's number, in `0 ..< Limits.videoStreams`.
  public let number: UInt8

  /// Validates a stream number; nil for a number out of range.
  public init?(_ number: Int) {
    guard (0..<Limits.videoStreams).contains(number) else { return nil }
    self.number = UInt8(number)
  }

  private init(known number: UInt8) { self.number = number }

  /// The camera, which is always stream 0.
  public static let camera = StreamID(known: 0)
  /// The shared screen, which is always stream 1.
  public static let screen = StreamID(known: 1)
  /// All streams that a member can have, in ascending order.
  public static let all = (0..<UInt8(Limits.videoStreams)).map { StreamID(known: $0) }

  /// The number as an array index.
  public var index: Int { Int(number) }

  /// The fixed name of streams 0 and 1, or the default name of other streams.
  public var description: String {
    switch self {
    case .camera: "camera"
    case .screen: "screen"
    default: "stream-\(number)"
    }
  }

  public static func < (a: StreamID, b: StreamID) -> Bool { a.number < b.number }
}
