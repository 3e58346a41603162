/// A video stream of a member: the camera, the screen, or a further source.
///
/// The number is part of payload types and SSRCs, so that a packet can be assigned to its stream
/// before any presence has arrived.
public struct StreamID: Hashable, Comparable, Sendable, CustomStringConvertible {
  /// 0 ..< `Limits.videoStreams`.
  public let number: UInt8

  /// Nil for a number that no stream can have.
  public init?(_ number: Int) {
    guard (0..<Limits.videoStreams).contains(number) else { return nil }
    self.number = UInt8(number)
  }

  private init(known number: UInt8) { self.number = number }

  /// The camera, always stream 0.
  public static let camera = StreamID(known: 0)
  /// The shared screen, always stream 1.
  public static let screen = StreamID(known: 1)
  /// All streams that a member can have, in ascending order.
  public static let all = (0..<UInt8(Limits.videoStreams)).map { StreamID(known: $0) }

  /// The number as an array index.
  public var index: Int { Int(number) }

  /// The name of streams 0 and 1, and the default name of the others.
  public var description: String {
    switch self {
    case .camera: "camera"
    case .screen: "screen"
    default: "stream-\(number)"
    }
  }

  public static func < (a: StreamID, b: StreamID) -> Bool { a.number < b.number }
}
