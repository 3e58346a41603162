import MusterBase

/// A batch of datagrams for one segmented send: to one address, of one class, and of one size
/// except the last.
package struct DatagramBatch {
  /// The maximum number of datagrams: `UDP_MAX_SEGMENTS` of kernels before 6.9.
  static let segments = 64
  /// The maximum size in bytes: the kernel treats the batch as one IP packet of at most 65,535
  /// bytes, headers included, before segmentation.
  static let limit = 65_000

  /// The destination; nil while the batch is empty.
  package private(set) var address: Address?
  /// The class of all datagrams.
  package private(set) var serviceClass = ServiceClass.standard
  /// The concatenated datagrams.
  package private(set) var bytes: [UInt8] = []
  /// The size in bytes of each datagram except the last, which may be shorter.
  package private(set) var segment = 0
  private var count = 0

  package init() { bytes.reserveCapacity(Self.limit) }

  /// Appends a datagram; false if the datagram does not fit. An empty batch accepts any datagram.
  package mutating func append(
    _ datagram: [UInt8], to destination: Address, as serviceClass: ServiceClass = .standard
  ) -> Bool {
    guard address != nil else {
      address = destination
      self.serviceClass = serviceClass
      segment = datagram.count
      count = 1
      bytes += datagram
      return true
    }
    let isWhole = bytes.count == count * segment
    guard address == destination, serviceClass == self.serviceClass, isWhole, !datagram.isEmpty,
      datagram.count <= segment, count < Self.segments,
      bytes.count + datagram.count <= Self.limit
    else { return false }
    count += 1
    bytes += datagram
    return true
  }

  /// Empties the batch but keeps its storage.
  package mutating func clear() {
    address = nil
    count = 0
    bytes.removeAll(keepingCapacity: true)
  }
}
