import MusterBase

/// Datagrams to one address, all of one size but the last, for one segmented send.
package struct DatagramBatch {
  /// `UDP_MAX_SEGMENTS` of kernels before 6.9.
  static let segments = 64
  /// One send is one IP packet to the kernel until it is cut: 65,535 less its headers.
  static let limit = 65_000

  /// Where the datagrams go; nil while there are none.
  package private(set) var address: Address?
  /// The datagrams one behind the other.
  package private(set) var bytes: [UInt8] = []
  /// Bytes of every datagram but the last, which may be shorter.
  package private(set) var segment = 0
  private var count = 0

  package init() { bytes.reserveCapacity(Self.limit) }

  /// False when the datagram does not fit behind those before it; an empty batch takes any.
  package mutating func append(_ datagram: [UInt8], to destination: Address) -> Bool {
    guard address != nil else {
      address = destination
      segment = datagram.count
      count = 1
      bytes += datagram
      return true
    }
    let isWhole = bytes.count == count * segment
    guard address == destination, isWhole, !datagram.isEmpty, datagram.count <= segment,
      count < Self.segments, bytes.count + datagram.count <= Self.limit
    else { return false }
    count += 1
    bytes += datagram
    return true
  }

  /// Keeps the storage for the next one.
  package mutating func clear() {
    address = nil
    count = 0
    bytes.removeAll(keepingCapacity: true)
  }
}
