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

/// Whether a batch accepts each of the datagrams, appended in order.
private func taken(_ datagrams: [([UInt8], Address)]) -> [Bool] {
  var batch = DatagramBatch()
  return datagrams.map { batch.append($0.0, to: $0.1) }
}

@Test func aBatchHoldsDatagramsOfOneSizeAndAShorterLastOne() {
  let sizes = [1000, 1000, 900, 900]
  #expect(taken(sizes.map { (datagram($0), here) }) == [true, true, true, false])
}

@Test func aBatchTakesNoLargerDatagramAndNoOtherAddress() {
  let offered = [(datagram(100), here), (datagram(101), here), (datagram(100), there), ([], here)]
  #expect(taken(offered) == [true, false, false, false])
}

@Test func aClearedBatchTakesAnyDatagram() {
  var batch = DatagramBatch()
  let first = batch.append(datagram(100), to: here)
  batch.clear()
  let second = batch.append(datagram(101), to: there)
  #expect(first && second && batch.address == there && batch.bytes.count == 101)
}

@Test func aBatchIsBounded() {
  let small = taken((0..<100).map { _ in (datagram(10), here) })
  #expect(small.count { $0 } == 64)
  let large = taken((0..<100).map { _ in (datagram(1200), here) })
  #expect(large.count { $0 } == 54)
}

/// Sends through real sockets: the receiver sees the datagrams as they were enqueued.
@Test func segmentedSendsKeepDatagramsApartAndInOrder() async throws {
  let loop = MultiThreadedEventLoopGroup.singleton.next()
  let received = Mutex<[[UInt8]]>([])
  let (arrivals, arrival) = AsyncStream<Void>.makeStream()
  let loopback = Address(host: .v4(0x7F00_0001), port: 0)
  let receiver = try await Sockets.open(listen: loopback, lan: false, on: loop) {
    DatagramHandler { datagrams in
      for datagram in datagrams {
        received.withLock { $0.append(datagram.bytes) }
        arrival.yield()
      }
    }
  }
  let sender = try await Sockets.open(listen: loopback, lan: false, on: loop) {
    DatagramHandler { _ in }
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
