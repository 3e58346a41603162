import MusterBase

/// A video stream of a member in one channel.
public struct MemberStream: Hashable, Comparable, Sendable {
  /// The channel and the member.
  public let link: LinkID
  /// Which of the member's streams.
  public let stream: StreamID

  /// A stream of the member at the other end of `link`.
  public init(_ link: LinkID, _ stream: StreamID) {
    self.link = link
    self.stream = stream
  }

  public static func < (a: MemberStream, b: MemberStream) -> Bool {
    a.link != b.link ? a.link < b.link : a.stream < b.stream
  }
}
