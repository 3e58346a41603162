import MusterBase
import MusterCongestion
import MusterWire

/// A packet that waits for its turn on a path. It is sealed when it leaves, so that it has the
/// packet number, and takes the path, of that time.
struct QueuedPacket: Equatable, Sendable {
  typealias Priority = Pacer<QueuedPacket>.Priority

  let payload: OutgoingPayload
  let link: LinkID

  init(_ payload: OutgoingPayload, over link: LinkID) {
    self.payload = payload
    self.link = link
  }
}
