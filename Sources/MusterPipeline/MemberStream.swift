import MusterBase

/// A video stream of a member in one channel.
package struct MemberStream: Hashable, Comparable, Sendable {
  package let link: LinkID
  package let stream: StreamID

  package init(_ link: LinkID, _ stream: StreamID) {
    self.link = link
    self.stream = stream
  }

  package static func < (a: MemberStream, b: MemberStream) -> Bool {
    a.link != b.link ? a.link < b.link : a.stream < b.stream
  }
}
