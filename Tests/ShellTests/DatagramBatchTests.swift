import MusterBase
import MusterNetwork
import MusterSystem
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

@Test func aBatchTakesOnlyDatagramsOfOneClass() {
  var batch = DatagramBatch()
  let classes: [ServiceClass] = [.audio, .video, .standard, .audio, .audio]
  let taken = classes.map { batch.append(datagram(100), to: here, as: $0) }
  #expect(taken == [true, false, false, true, true] && batch.serviceClass == .audio)
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

/// A receiver that keeps what arrives.
private final class Inbox: Sendable {
  private let received = Mutex<[ReceivedDatagram]>([])
  private let arrivals = AsyncStream<Void>.makeStream()

  func take(_ datagrams: [ReceivedDatagram]) {
    received.withLock { $0 += datagrams }
    for _ in datagrams { arrivals.continuation.yield() }
  }

  /// Takes the next datagrams once so many have arrived.
  func next(_ count: Int) async -> [ReceivedDatagram] {
    var iterator = arrivals.stream.makeAsyncIterator()
    for _ in 0..<count { await iterator.next() }
    return received.withLock { all in
      defer { all = [] }
      return all
    }
  }
}

/// Sockets on the loopback interface, and the address of the first ones, which fill the inbox.
private func sockets(
  to inbox: Inbox, on loop: PollLoop, at loopback: Address.Host = .v4(0x7F00_0001)
) throws -> (receiver: Sockets, sender: Sockets, target: Address) {
  let any = Address(host: loopback, port: 0)
  let receiver = try Sockets.open(listen: any, lan: false, on: loop) { inbox.take($0) }
  let sender = try Sockets.open(listen: any, lan: false, on: loop) { _ in }
  return (receiver, sender, Address(host: loopback, port: receiver.port))
}

/// Sends through real sockets: the receiver sees the datagrams as they were enqueued.
@Test func segmentedSendsKeepDatagramsApartAndInOrder() async throws {
  let (loop, inbox) = (try #require(PollLoop("muster-test")), Inbox())
  let (receiver, sender, target) = try sockets(to: inbox, on: loop)
  let sizes = [1000, 1000, 1000, 400, 1200, 1200, 20, 20, 30]
  let sent = sizes.enumerated().map { datagram($1, UInt8($0)) }
  for one in sent { sender.enqueue(one, to: target) }
  sender.flush()
  #expect(await inbox.next(sent.count).map(\.bytes) == sent)
  #expect(sender.bytesSent == UInt64(sizes.reduce(0, +)))
  receiver.close()
  sender.close()
}

/// The class reaches the receiver in the IP header, of single datagrams and of those that are sent
/// in one call; nothing else is marked, nor anything without `marksClasses`.
@Test(arguments: [Address.Host.v4(0x7F00_0001), .v6(high: 0, low: 1, zone: 0)])
func datagramsSayOfWhichClassTheyAre(host: Address.Host) async throws {
  let (loop, inbox) = (try #require(PollLoop("muster-test")), Inbox())
  guard let (receiver, sender, target) = try? sockets(to: inbox, on: loop, at: host) else {
    return try #expect(Address(host: host, port: 0).isIPv6, "this machine has no IPv6")
  }
  let classes: [ServiceClass] = [.audio, .video, .video, .video, .standard]
  for serviceClass in classes { sender.enqueue(datagram(500), to: target, as: serviceClass) }
  sender.flush()
  #expect(await inbox.next(5).map(\.trafficClass) == [184, 136, 136, 136, 0])
  #expect(sender.marksClasses, "the kernel refuses no class")
  sender.marksClasses = false
  for serviceClass in classes { sender.enqueue(datagram(500), to: target, as: serviceClass) }
  sender.flush()
  #expect(await inbox.next(5).map(\.trafficClass) == [0, 0, 0, 0, 0])
  receiver.close()
  sender.close()
}

@Test func receivedTrafficCountsMarksAndReportsOfCongestion() {
  var traffic = ReceivedTraffic()
  for trafficClass in [0, 1, 2, 3, 184, 187] as [UInt8] { traffic.count(trafficClass) }
  #expect(traffic.marked == 2 && traffic.congestionExperienced == 2)
}

/// A datagram that waits for the loop is known to have arrived before. The kernel begins to note
/// the times some milliseconds after the first socket has asked for them.
@Test func aDatagramArrivesBeforeTheLoopComesToIt() async throws {
  let (loop, inbox) = (try #require(PollLoop("muster-test")), Inbox())
  let (receiver, sender, target) = try sockets(to: inbox, on: loop)
  var waits: [Duration] = []
  for attempt in 0..<100 where waits.last.map({ $0 < .milliseconds(50) }) ?? true {
    let busy = Cancellation()
    loop.execute { _ = busy.sleep(until: BootClock.now + .seconds(60)) }
    sender.enqueue(datagram(100, UInt8(attempt)), to: target)
    sender.flush()
    _ = Cancellation().sleep(until: BootClock.now + .milliseconds(50))
    busy.cancel()
    let now = BootClock.now
    waits += await inbox.next(1).map { now - $0.arrivedAt }
  }
  #expect(waits.last.map { $0 >= .milliseconds(50) } ?? false, "\(waits)")
  receiver.close()
  sender.close()
}
