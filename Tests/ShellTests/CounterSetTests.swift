import MusterBase
import MusterChannel
import MusterCore
import MusterDiscovery
import MusterLink
import MusterMedia
import MusterNetwork
import Testing

/// The list of each counter set must name every property, so that every counter is shown.
struct CounterSetTests {
  @Test func listsHaveEveryIntegerProperty() {
    check(LinkCounters())
    check(DiscoveryCounters())
    check(RelayCounters())
    check(RendezvousCounters())
    check(GossipCounters())
    check(VideoStatistics())
    check(AudioStatistics())
    check(ReceivedTraffic())
  }

  @Test func valuesBelongToTheirNames() {
    var counters = AudioStatistics()
    counters.received = 7
    counters.late = 9
    let shown = counters.counted.filter { $0.value != 0 }
    #expect(shown.map(\.name) == ["received", "late"])
    #expect(shown.map(\.value) == [7, 9])
  }

  private func check(_ counters: some CounterSet) {
    let properties = Mirror(reflecting: counters).children.compactMap { child in
      child.value is any BinaryInteger ? child.label : nil
    }
    #expect(counters.counted.map(\.name) == properties, "\(type(of: counters))")
    #expect(!properties.isEmpty)
  }
}
