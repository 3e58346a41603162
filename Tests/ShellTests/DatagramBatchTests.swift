import MusterBase
import MusterNetwork
import NIOCore
import NIOPosix
import Synchronization
import Testing

private let here = Address(host: .v4(0x7F00_0001), port: 4000)
private let there = Address(host: .v4(0x7F00_0002), port: 4000)

private func datagram(_ size: Int, _ byte: UInt8 = 1) -> [UInt8] {
  [UInt8](repeating: byte, count: size)
}

@Test func aBatchHoldsDatagramsOfOneSizeAndAShorterLastOne() {
  var batch = DatagramBatch()
  #expect(batch.append(datagram(1000), to: here))
  #expect(batch.append(datagram(1000), to: here))
  #expect(batch.append(datagram(900), to: here))
  #expect(!batch.append(datagram(900), to: here), "behind a shorter one")
  #expect(batch.bytes.count == 2900 && batch.segment == 1000)
}

@Test func aBatchTakesNoLargerDatagramAndNoOtherAddress() {
  var batch = DatagramBatch()
  #expect(batch.append(datagram(100), to: here))
  #expect(!batch.append(datagram(101), to: here))
  #expect(!batch.append(datagram(100), to: there))
  #expect(!batch.append([], to: here))
  batch.clear()
  #expect(batch.address == nil)
  #expect(batch.append(datagram(101), to: there))
}

@Test func aBatchIsBounded() {
  var small = DatagramBatch()
  let tiny = (0..<100).filter { _ in small.append(datagram(10), to: here) }
  #expect(tiny.count == 64)
  var large = DatagramBatch()
  let full = (0..<100).filter { _ in large.append(datagram(1200), to: here) }
  #expect(full.count == 54)
}

/// Sends through real sockets: the receiver sees the datagrams as they were enqueued.
@Test func segmentedSendsKeepDatagramsApartAndInOrder() async throws {
  let loop = MultiThreadedEventLoopGroup.singleton.next()
  let received = Mutex<[[UInt8]]>([])
  let (arrivals, arrival) = AsyncStream<Void>.makeStream()
  let loopback = Address(host: .v4(0x7F00_0001), port: 0)
  let receiver = try await Sockets.open(listen: loopback, lan: false, on: loop) {
    DatagramHandler { bytes, _ in
      received.withLock { $0.append(bytes) }
      arrival.yield()
    }
  }
  let sender = try await Sockets.open(listen: loopback, lan: false, on: loop) {
    DatagramHandler { _, _ in }
  }
  let target = Address(host: .v4(0x7F00_0001), port: receiver.port)
  let sizes = [1000, 1000, 1000, 400, 1200, 1200, 20, 20, 30]
  let sent = sizes.enumerated().map { datagram($1, UInt8($0)) }
  for one in sent { sender.enqueue(one, to: target) }
  sender.flush()
  var count = 0
  for await _ in arrivals {
    count += 1
    if count == sent.count { break }
  }
  #expect(received.withLock { $0 } == sent)
  #expect(sender.bytesSent == UInt64(sizes.reduce(0, +)))
  for channel in receiver.takeChannels() + sender.takeChannels() { try await channel.close() }
}
