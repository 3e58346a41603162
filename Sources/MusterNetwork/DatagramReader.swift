import CMusterShims
import MusterBase
import MusterSystem

/// A received datagram.
package struct ReceivedDatagram: Sendable {
  /// The UDP payload.
  package let bytes: [UInt8]
  /// The source address.
  package let source: Address
  /// The time at which the kernel received it. The reader may have come to it later, for lack of
  /// CPU, which must not be taken for a queue in the network.
  package let arrivedAt: Instant
  /// The IPv4 type of service or the IPv6 traffic class, as it has arrived; 0 if unknown.
  package let trafficClass: UInt8
}

/// Reads datagrams, as many as wait, into storage that is used again and again. Used by one thread.
package final class DatagramReader {
  /// The most datagrams of one system call.
  private static let count = 32
  /// The room for one datagram: more than any MTU lets through in one piece.
  private static let size = 2048
  /// The longest that a datagram can have waited: what the socket's buffer holds of a quiet call.
  /// More means that the machine's clock was set.
  private static let longestWait = Duration.seconds(30)

  private let buffer = UnsafeMutableRawBufferPointer.allocate(
    byteCount: count * size, alignment: 16)
  private var read = [muster_datagram](repeating: muster_datagram(), count: count)

  package init() {}

  deinit { buffer.deallocate() }

  /// Appends the datagrams that wait at a socket to `datagrams`, in the order of arrival; true if
  /// more may wait. Errors of single datagrams (ICMP errors) are ignored: the engines retransmit.
  package func read(_ descriptor: Int32, into datagrams: inout [ReceivedDatagram]) -> Bool {
    let found = Int(
      muster_receive(
        descriptor, buffer.baseAddress, UInt32(Self.size), &read, UInt32(Self.count)))
    guard found > 0 else { return false }
    let now = BootClock.now
    for index in 0..<found {
      guard let source = Self.source(read[index]) else { continue }
      let start = index * Self.size
      let wait = Duration.nanoseconds(read[index].age)
      let isPlausible = wait > .zero && wait < Self.longestWait
      datagrams.append(
        ReceivedDatagram(
          bytes: [UInt8](buffer[start..<start + min(Int(read[index].length), Self.size)]),
          source: source, arrivedAt: isPlausible ? now + (.zero - wait) : now,
          trafficClass: read[index].traffic_class))
    }
    return found == Self.count
  }

  private static func source(_ datagram: muster_datagram) -> Address? {
    withUnsafeBytes(of: datagram.host) { host in
      func word<Word: FixedWidthInteger>(at offset: Int) -> Word {
        Word(bigEndian: host.loadUnaligned(fromByteOffset: offset, as: Word.self))
      }
      switch datagram.family {
      case AF_INET: return Address(host: .v4(word(at: 0)), port: datagram.port)
      case AF_INET6:
        return Address(
          host: .v6(high: word(at: 0), low: word(at: 8), zone: datagram.zone), port: datagram.port)
      default: return nil
      }
    }
  }
}
