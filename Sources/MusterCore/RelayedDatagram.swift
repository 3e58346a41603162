import MusterBase
import MusterLink

/// A datagram that this node relays from one neighbour to another one.
struct RelayedDatagram: Sendable {
  let datagram: ArraySlice<UInt8>
  let sender: NodeID
  /// The link over which it leaves.
  let target: LinkID
}
