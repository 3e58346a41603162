/// Which of a member's video streams: the camera, the screen, or a further source.
///
/// Numbers are the member's own and stand in payload types and SSRCs, so that a packet can be
/// assigned to its stream before any presence has arrived.
public struct StreamID: Hashable, Comparable, Sendable, CustomStringConvertible {
  /// 0 up to, not including, `Limits.videoStreams`.
  public let number: UInt8

  /// Nil for a number that no stream can have.
  public init?(_ number: Int) {
    guard (0..<Limits.videoStreams).contains(number) else { return nil }
    self.number = UInt8(number)
  }

  private init(known number: UInt8) { self.number = number }

  public static let camera = StreamID(known: 0)
  public static let screen = StreamID(known: 1)
  /// Every stream that a member can have, in rising order.
  public static let all = (0..<UInt8(Limits.videoStreams)).map { StreamID(known: $0) }

  public var index: Int { Int(number) }

  /// The name of streams 0 and 1, and of the others as long as their member has announced none.
  public var description: String {
    switch self {
    case .camera: "camera"
    case .screen: "screen"
    default: "stream-\(number)"
    }
  }

  public static func < (a: StreamID, b: StreamID) -> Bool { a.number < b.number }
}
