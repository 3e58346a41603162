import Glibc
import Muster
import MusterBase
import MusterChannel
import MusterNetwork
import MusterStore
import Testing

struct RendezvousProbeTests {
  @Test func answeringAndSilentServersAreDistinguished() async throws {
    let host = try await RendezvousHost.start(listen: "127.0.0.1:0")
    let good = "\(try #require(host.listening.first))"
    let probe = try await RendezvousProbe.ask(
      [good, "127.0.0.1:1"], remembered: [good, "no address", "127.0.0.1:2"])
    await host.stop()
    #expect(probe.reports.map(\.name) == [good, "127.0.0.1:1", "127.0.0.1:2"])
    #expect(probe.reports.map(\.hasAnswered) == [true, false, false])
    #expect(probe.reports.dropFirst().allSatisfy { $0.outcome == .refused })
    guard case .answered(let seen, let roundTrip) = probe.reports.first?.outcome else { return }
    #expect(seen.isLoopback)
    #expect(roundTrip > .zero && roundTrip < .seconds(2))
    // Two sockets have asked: the one shared by all rendezvous, and the one for this rendezvous
    // only.
    #expect(probe.observations.map(\.destination) == [Address(good), Address(good)])
    #expect(probe.observations.allSatisfy { $0.local == $0.seen })
    #expect(probe.observations.first?.local.port != probe.observations.last?.local.port)
    let mapping = try #require(probe.mapping(ipv6: false))
    #expect(mapping.kind == .none)
    #expect(mapping.isLocal)
    #expect(probe.mapping(ipv6: true) == nil)
  }

  @Test func aNameThatMakesNoSenseIsBadUse() async {
    await #expect(throws: MusterError.self) { try await RendezvousProbe.ask(["nobody"]) }
  }

  @Test func nobodyIsAskedWhereNobodyIsNamed() async throws {
    let probe = try await RendezvousProbe.ask([])
    #expect(probe.reports.isEmpty && probe.observations.isEmpty)
  }
}

struct RememberedRendezvousTests {
  private let fixture = StoreFixture()

  private func save(_ id: Int, at seconds: UInt64, _ rendezvous: [String]) async throws {
    var channel = StoredChannel(
      id: ChannelID(bytes32(id)), name: "lab", createdAt: seconds)
    channel.rendezvous = rendezvous
    try await fixture.store().write([.channel(channel)])
  }

  @Test func thoseOfAllChannelsAreReadTheNewestFirst() async throws {
    try await save(1, at: 1, ["a:1", "b:2"])
    try await save(2, at: 2, ["c:3", "a:1"])
    #expect(try await Store.rendezvous(in: fixture.path) == ["c:3", "a:1", "b:2"])
  }

  @Test func theyAreReadBesideANode() async throws {
    let store = try await fixture.store()
    var channel = StoredChannel(id: ChannelID(bytes32(1)), name: "lab", createdAt: 1)
    channel.rendezvous = ["a:1"]
    try await store.write([.channel(channel)])
    #expect(try await Store.rendezvous(in: fixture.path) == ["a:1"])
    try await store.write([.rendezvous(["b:2"], channel: channel.id)])
    #expect(try await Store.rendezvous(in: fixture.path) == ["b:2"])
  }

  @Test func nothingIsMadeWhereNothingIs() async throws {
    #expect(try await Store.rendezvous(in: fixture.path).isEmpty)
    #expect(access(fixture.path, F_OK) != 0)
  }

  @Test func aDamagedStoreIsAnErrorAndNoTrap() async throws {
    try fixture.write([UInt8](repeating: 0x55, count: 5000), to: fixture.database)
    await #expect {
      try await Store.rendezvous(in: fixture.path)
    } throws: { StoreFixture.isClear($0) }
  }
}
