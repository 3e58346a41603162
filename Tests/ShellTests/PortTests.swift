import Muster
import MusterBase
import MusterNetwork
import Testing

private let table = """
  Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
  wlan0\t00000000\t0102A8C0\t0003\t0\t0\t600\t00000000\t0\t0\t0
  eth0\t00000000\t0101A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0
  eth0\t0001A8C0\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0
  ppp0\t00000000\t00000000\t0001\t0\t0\t50\t00000000\t0\t0\t0
  tun0\t00000000\t0100000A\t0003\t0\t0\t1\t00000080\t0\t0\t0

  """

@Test func theDefaultRouteOfTheLeastMetricIsPreferred() throws {
  let route = try #require(DefaultRoute.preferred(in: table))
  #expect(route.interface == "eth0")
  #expect(route.gateway == Address("192.168.1.1:0"))
}

@Test(arguments: ["", "Iface\n", "Iface\neth0\n", "Iface\neth0 0 zz 3 0 0 0 0\n"])
func aTableWithoutADefaultRouteLeadsNowhere(table: String) {
  #expect(DefaultRoute.preferred(in: table) == nil)
}

@Test(arguments: [
  "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "100.127.255.255",
  "169.254.1.1", "127.0.0.1", "0.0.0.0", "0.1.2.3", "224.0.0.1", "255.255.255.255",
])
func privateAddressesAreNotOutside(host: String) throws {
  #expect(try !#require(Address("\(host):1")).isPublic)
}

@Test(arguments: [
  "11.0.0.1", "172.15.255.255", "172.32.0.1", "192.167.1.1", "100.63.255.255", "100.128.0.1",
  "198.51.100.7", "223.255.255.255",
])
func otherAddressesAreOutside(host: String) throws {
  #expect(try #require(Address("\(host):1")).isPublic)
}

@Test(arguments: ["http://192.168.1.1/", "http://192.168.1.1:5000/rootDesc.xml"])
func aLocationAtTheGatewayIsFollowed(url: String) throws {
  #expect(UPnP.isAt(try #require(Address("192.168.1.1:0")), url))
}

@Test(arguments: [
  "http://192.168.1.10/", "http://192.168.1.2:5000/", "http://192.168.1.1.example/",
  "http://192.168.1.1@192.0.2.1/", "https://192.168.1.1/", "http://192.168.1.1", "http://router/",
  "/rootDesc.xml", "",
])
func aLocationElsewhereIsNotFollowed(url: String) throws {
  #expect(!UPnP.isAt(try #require(Address("192.168.1.1:0")), url))
}

@Test(arguments: [
  (["0.0.0.0:4711", "[::]:4711"], true), (["192.168.1.5:4711"], true),
  (["10.8.0.2:4711"], false), (["192.168.1.6:4711"], false), (["[::]:4711"], false), ([], false),
])
func aPortIsMappedOnlyToWhereASocketIs(bound: [String], isMapped: Bool) throws {
  let inside = try #require(Address("192.168.1.5:50000"))
  let bound = try bound.map { try #require(Address($0)) }
  #expect(PortMapper.reaches(bound, inside) == isMapped)
}

private let start = Instant.zero + .seconds(1000)

private func mapping(_ outside: String, _ lifetime: Duration) -> PortMapping {
  PortMapping(method: .natPMP, outside: Address(outside)!, lifetime: lifetime)
}

/// The time in seconds until the next request to the gateway; nil if it exceeds 10,000 s.
private func wait(after answer: PortMapping?) -> Int64? {
  var keeping = PortKeeping()
  guard keeping.begin(at: start) else { return nil }
  _ = keeping.answered(answer, at: start)
  return (0...10_000).first { second in
    var copy = keeping
    return copy.begin(at: start + .seconds(second))
  }
}

@Test func aMappingIsRenewedAtHalfOfItsLifetime() {
  #expect(wait(after: mapping("192.0.2.1:4711", .seconds(7200))) == 3600)
  #expect(wait(after: mapping("192.0.2.1:4711", .seconds(600))) == 300)
}

@Test func noGatewayKeepsTheNodeBusyOrUnasked() {
  #expect(wait(after: nil) == 300)
  #expect(wait(after: mapping("192.0.2.1:4711", .seconds(1))) == 60)
  #expect(wait(after: mapping("192.0.2.1:4711", .zero)) == 3600)
  #expect(wait(after: mapping("192.0.2.1:4711", .seconds(4_294_967_295))) == 3600)
}

@Test func oneQuestionIsAskedAtATime() {
  var keeping = PortKeeping()
  let asks = [start, start + .seconds(100_000)].map { keeping.begin(at: $0) }
  #expect(asks == [true, false])
}

@Test func otherAddressesHaveTheGatewayAskedAtOnce() {
  var keeping = PortKeeping()
  _ = keeping.begin(at: start)
  keeping.addressesChanged(at: start + .seconds(1))
  _ = keeping.answered(mapping("192.0.2.1:4711", .seconds(7200)), at: start + .seconds(2))
  let asks = keeping.begin(at: start + .seconds(2))
  #expect(asks)
}

@Test func onlyWhatLeadsOutsideIsAnnounced() {
  var keeping = PortKeeping()
  let answers = ["10.0.0.7:4711", "192.0.2.1:4711", "192.0.2.1:4711"].map { outside in
    let isNews = keeping.answered(mapping(outside, .seconds(7200)), at: start)
    return (isNews, keeping.announced)
  }
  #expect(answers.map(\.0) == [false, true, false])
  #expect(answers.map(\.1) == [nil, Address("192.0.2.1:4711"), Address("192.0.2.1:4711")])
}

@Test func aMappingStaysUntilItRunsOutOrTheNetworkIsAnother() {
  var keeping = PortKeeping()
  _ = keeping.answered(mapping("192.0.2.1:4711", .seconds(7200)), at: start)
  var moved = keeping
  moved.addressesChanged(at: start + .seconds(10))
  let news = [3600, 7199, 7200].map { keeping.answered(nil, at: start + .seconds($0)) }
  #expect(news == [false, false, true])
  #expect(keeping.mapping == nil)
  let isLost = moved.answered(nil, at: start + .seconds(11))
  #expect(isLost)
}
