import MusterBase
import Testing

/// Addresses as people write them, each with its canonical form (RFC 5952).
private let canonical: [(String, String)] = [
  // RFC 5952 section 1: one address has many text representations.
  ("2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"),
  ("2001:0db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"),
  ("2001:db8::1:0:0:1", "2001:db8::1:0:0:1"),
  ("2001:db8::0:1:0:0:1", "2001:db8::1:0:0:1"),
  ("2001:0db8::1:0:0:1", "2001:db8::1:0:0:1"),
  ("2001:db8:0:0:1::1", "2001:db8::1:0:0:1"),
  ("2001:DB8:0:0:1::1", "2001:db8::1:0:0:1"),
  // 4.1: leading zeros are suppressed.
  ("2001:0db8::0001", "2001:db8::1"),
  // 4.2.1: `::` shortens as much as possible.
  ("2001:db8:0:0:0:0:2:1", "2001:db8::2:1"), ("2001:db8::0:1", "2001:db8::1"),
  // 4.2.2: a single group of zeros is not shortened.
  ("2001:db8::1:1:1:1:1", "2001:db8:0:1:1:1:1:1"),
  // 4.2.3: the longest run of zeros is shortened, and the first of equally long ones.
  ("2001:0:0:1:0:0:0:1", "2001:0:0:1::1"),
  // 4.3: hex digits are lower case.
  ("2001:DB8:AAAA::CCCD", "2001:db8:aaaa::cccd"),
  ("0:0:0:0:0:0:0:0", "::"), ("0:0:0:0:0:0:0:1", "::1"), ("1:0:0:0:0:0:0:0", "1::"),
  ("1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8"), ("0:2:3:4:5:6:7:0", "0:2:3:4:5:6:7:0"),
  ("fe80::1%3", "fe80::1%3"),
]

@Test(arguments: canonical)
func textOfIPv6IsCanonical(written: String, canonical: String) throws {
  let address = try #require(Address("[\(written)]:4000"))
  #expect(address.hostText == canonical)
  #expect(address.description == "[\(canonical)]:4000")
  #expect(Address(address.description) == address)
}

@Test func textOfIPv4IsDotted() throws {
  let address = try #require(Address("192.0.2.1:65535"))
  #expect(address == Address(host: .v4(0xC000_0201), port: 65535))
  #expect(address.description == "192.0.2.1:65535")
}

@Test(arguments: [
  "", ":", "1.2.3.4", "1.2.3:4", "1.2.3.4.5:6", "256.1.1.1:1", "1.2.3.4:65536", "1.2.3.4:-1",
  "1.2.3.4:", "a.b.c.d:1", "1..2.3:4", "0001.2.3.4:5", "example.org:80", "::1", "[::1]",
  "[::1]:99999", "::1]:80", "[::1:80", "[]:1", "[1:2:3:4:5:6:7]:1", "[1:2:3:4:5:6:7:8:9]:1",
  "[1:2:3:4:5:6:7:8::]:1", "[1::2::3]:1", "[:::]:1", "[12345::]:1", "[g::]:1", "[fe80::1%eth0]:1",
  "[fe80::1%1%2]:1", "[1.2.3.4]:1", "[:1]:1", "[1:]:1",
  // A sign is not a digit.
  "+1.2.3.4:5", "1.2.3.4:+5", "[+1::]:80", "[fe80::1%+2]:1",
])
func otherTextIsNoAddress(text: String) {
  #expect(Address(text) == nil)
}

@Test(arguments: [
  ("127.0.0.1:1", true), ("192.0.2.1:1", true), ("[2001:db8::1]:1", true), ("[fe80::1%2]:1", true),
  ("0.0.0.0:1", false), ("0.1.2.3:1", false), ("224.0.0.251:5353", false), ("239.1.1.1:1", false),
  ("255.255.255.255:1", false), ("240.0.0.1:1", false), ("[::]:1", false), ("[ff02::1]:1", false),
  ("192.0.2.1:0", false), ("[2001:db8::1]:0", false),
  // IPv4-mapped IPv6 addresses (RFC 4291 2.5.5.2) are judged as the IPv4 address.
  ("[::ffff:c000:201]:1", true), ("[::ffff:e000:1]:1", false), ("[::ffff:ffff:ffff]:1", false),
  ("[::ffff:0:0]:1", false),
])
func onlyOneHostIsUnicast(text: String, isUnicast: Bool) throws {
  #expect(try #require(Address(text)).isUnicast == isUnicast)
}

@Test func scopesAreRecognised() throws {
  #expect(try #require(Address("127.8.9.1:1")).isLoopback)
  #expect(try #require(Address("[::1]:1")).isLoopback)
  #expect(!(try #require(Address("128.0.0.1:1")).isLoopback))
  #expect(try #require(Address("169.254.3.4:1")).isLinkLocal)
  #expect(try #require(Address("[febf::1]:1")).isLinkLocal)
  #expect(!(try #require(Address("[fec0::1]:1")).isLinkLocal))
  #expect(try #require(Address("[fe80::1%7]:1")).withoutZone == Address("[fe80::1]:1"))
}

@Test func addressesAreOrderedTotally() throws {
  let sorted = try [
    "1.2.3.4:5", "1.2.3.4:6", "1.2.3.5:1", "[::1]:1", "[2001:db8::]:1", "[fe80::1]:1",
    "[fe80::1%2]:1",
  ].map { try #require(Address($0)) }
  var random = PRNG(seed: 5)
  var shuffled = sorted
  for index in shuffled.indices { shuffled.swapAt(index, random.below(shuffled.count)) }
  #expect(shuffled.sorted() == sorted)
}

@Test func everyAddressSurvivesItsText() {
  var random = PRNG(seed: 20)
  for _ in 0..<20_000 {
    // Few distinct groups, so that runs of zeros are common.
    func word() -> UInt64 { (0..<4).reduce(0) { sum, _ in sum << 16 | UInt64(random.below(3)) } }
    let v6 = Address.Host.v6(high: word(), low: word(), zone: UInt32(random.below(3)))
    let host = random.chance(0.2) ? .v4(UInt32(truncatingIfNeeded: random.next())) : v6
    let address = Address(host: host, port: UInt16(random.below(65536)))
    #expect(Address(address.description) == address)
  }
}

@Test func hostileTextNeverTraps() {
  var random = PRNG(seed: 21)
  let alphabet = Array("0123456789abcdefABCDEF:::...[]%-+ \u{301}é")
  for _ in 0..<200_000 {
    let text = String((0..<random.below(24)).map { _ in alphabet[random.below(alphabet.count)] })
    if let address = Address(text) { #expect(Address(address.description) == address) }
  }
}

@Test(
  arguments: [
    ("10.0.0.7", "10.0.0.200", 24, true), ("10.0.0.7", "10.0.1.7", 24, false),
    ("10.0.0.7", "10.0.1.7", 23, true), ("10.0.0.7", "10.0.0.7", 32, true),
    ("10.0.0.7", "10.0.0.6", 32, false), ("10.0.0.7", "10.0.0.6", 31, true),
    ("10.0.0.7", "138.0.0.7", 1, false), ("10.0.0.7", "10.0.0.7", 0, false),
    ("[fd77::1]", "[fd77::2]", 64, true), ("[fd77::1]", "[fd77:0:0:1::1]", 64, false),
    ("[fd77::1]", "[fd77:0:0:1::1]", 63, true), ("[fd77::1]", "[fd77::2]", 126, true),
    ("[fd77::1]", "[fd77::2]", 127, false), ("[fd77::1]", "[fd77::1]", 128, true),
    ("[fe80::1%2]", "[fe80::2%3]", 64, false), ("[fe80::1%2]", "[fe80::2]", 64, true),
    ("10.0.0.7", "[a00:7::]", 8, false),
  ])
func hostsOfANetworkShareAPrefix(one: String, other: String, bits: Int, isShared: Bool) throws {
  let (one, other) = (try #require(Address("\(one):1")), try #require(Address("\(other):2")))
  #expect(one.sharesPrefix(with: other, bits: bits) == isShared)
  #expect(other.sharesPrefix(with: one, bits: bits) == isShared)
}
