import MusterBase
import MusterDiscovery
import Testing

/// Observations, each as `local destination seen`, and the mapping inferred from them.
private struct Case: CustomTestStringConvertible {
  var name: String
  var seen: [String]
  var kind: NATMapping.Kind
  var isCertain: Bool
  var outside: [String]
  var isShared = false
  var isLocal = false

  var testDescription: String { name }

  var mapping: NATMapping? {
    NATMapping(seen.compactMap(observation))
  }
}

private func host(_ text: String) -> Address? {
  Address(text.contains(":") ? "[\(text)]:0" : "\(text):0")
}

private func observation(_ text: String) -> NATMapping.Observation? {
  let parts = text.split(separator: " ")
  guard parts.count == 3, let local = Address(parts[0]), let destination = Address(parts[1]),
    let seen = Address(parts[2])
  else { return nil }
  return NATMapping.Observation(local: local, destination: destination, seen: seen)
}

private let cases = [
  Case(
    name: "a host on the internet", seen: ["203.0.113.9:4000 198.51.100.2:1 203.0.113.9:4000"],
    kind: .none, isCertain: true, outside: ["203.0.113.9"]),
  Case(
    name: "two ways out, neither translated",
    seen: [
      "203.0.113.9:4000 198.51.100.2:1 203.0.113.9:4000",
      "192.0.2.9:4000 198.51.100.3:1 192.0.2.9:4000",
    ],
    kind: .none, isCertain: true, outside: ["192.0.2.9", "203.0.113.9"]),
  Case(
    name: "IPv6 as it is meant",
    seen: ["[2001:db8::9]:4000 [2001:db8:1::1]:1 [2001:db8::9]:4000"],
    kind: .none, isCertain: true, outside: ["2001:db8::9"]),
  Case(
    name: "IPv6 on one segment", seen: ["[fe80::1%2]:4000 [fe80::2%2]:1 [fe80::1]:4000"],
    kind: .none, isCertain: false, outside: ["fe80::1"], isLocal: true),
  Case(
    name: "the port is kept, says one",
    seen: [
      "192.168.1.2:4000 198.51.100.2:1 203.0.113.9:4000",
      "192.168.1.2:4001 198.51.100.2:1 203.0.113.9:4001",
    ],
    kind: .portKept, isCertain: false, outside: ["203.0.113.9"]),
  Case(
    name: "the port is kept, say two ports of one host",
    seen: [
      "192.168.1.2:4000 198.51.100.2:1 203.0.113.9:4000",
      "192.168.1.2:4000 198.51.100.2:2 203.0.113.9:4000",
    ],
    kind: .portKept, isCertain: false, outside: ["203.0.113.9"]),
  Case(
    name: "the port is kept, say two hosts",
    seen: [
      "192.168.1.2:4000 198.51.100.2:1 203.0.113.9:4000",
      "192.168.1.2:4000 198.51.100.3:1 203.0.113.9:4000",
    ],
    kind: .portKept, isCertain: true, outside: ["203.0.113.9"]),
  Case(
    name: "the port is kept on each of two ways out",
    seen: [
      "192.168.1.2:4000 198.51.100.2:1 203.0.113.9:4000",
      "192.168.2.2:4000 198.51.100.3:1 192.0.2.9:4000",
    ],
    kind: .portKept, isCertain: false, outside: ["192.0.2.9", "203.0.113.9"]),
  Case(
    name: "another port, the same for two hosts",
    seen: [
      "192.168.1.2:4000 198.51.100.2:1 203.0.113.9:5000",
      "192.168.1.2:4000 198.51.100.3:1 203.0.113.9:5000",
    ],
    kind: .onePort, isCertain: true, outside: ["203.0.113.9"]),
  Case(
    name: "another port, the same for two ports of one host",
    seen: [
      "192.168.1.2:4000 198.51.100.2:1 203.0.113.9:5000",
      "192.168.1.2:4000 198.51.100.2:2 203.0.113.9:5000",
    ],
    kind: .onePort, isCertain: false, outside: ["203.0.113.9"]),
  Case(
    name: "another port for each host",
    seen: [
      "192.168.1.2:4000 198.51.100.2:1 203.0.113.9:5000",
      "192.168.1.2:4000 198.51.100.3:1 203.0.113.9:5001",
    ],
    kind: .portPerDestination, isCertain: true, outside: ["203.0.113.9"]),
  Case(
    name: "kept for the first destination only",
    seen: [
      "192.168.1.2:4000 198.51.100.2:1 203.0.113.9:4000",
      "192.168.1.2:4000 198.51.100.2:2 203.0.113.9:5001",
    ],
    kind: .portPerDestination, isCertain: true, outside: ["203.0.113.9"]),
  Case(
    name: "another port, says one",
    seen: [
      "192.168.1.2:4000 198.51.100.2:1 203.0.113.9:5000",
      "192.168.1.2:4001 198.51.100.2:1 203.0.113.9:5001",
    ],
    kind: .unknown, isCertain: false, outside: ["203.0.113.9"]),
  Case(
    name: "another port on each of two ways out",
    seen: [
      "192.168.1.2:4000 198.51.100.2:1 203.0.113.9:5000",
      "192.168.2.2:4000 198.51.100.3:1 192.0.2.9:6000",
    ],
    kind: .unknown, isCertain: false, outside: ["192.0.2.9", "203.0.113.9"]),
  Case(
    name: "two ways out, one of them translated",
    seen: [
      "192.0.2.9:4000 198.51.100.2:1 192.0.2.9:4000",
      "192.168.1.2:4000 198.51.100.3:1 203.0.113.9:5000",
      "192.168.1.2:4000 198.51.100.4:1 203.0.113.9:5000",
    ],
    kind: .onePort, isCertain: true, outside: ["192.0.2.9", "203.0.113.9"]),
  Case(
    name: "the own address under another port",
    seen: [
      "203.0.113.9:4000 198.51.100.2:1 203.0.113.9:5000",
      "203.0.113.9:4000 198.51.100.3:1 203.0.113.9:5001",
    ],
    kind: .portPerDestination, isCertain: true, outside: ["203.0.113.9"]),
  Case(
    name: "a rendezvous of the own network only",
    seen: ["192.168.1.2:4000 192.168.1.7:1 192.168.1.2:4000"],
    kind: .none, isCertain: false, outside: ["192.168.1.2"], isLocal: true),
  Case(
    name: "one of the own network, one beyond",
    seen: [
      "192.168.1.2:4000 192.168.1.7:1 192.168.1.2:4000",
      "192.168.1.2:4000 198.51.100.3:1 203.0.113.9:4000",
    ],
    kind: .portKept, isCertain: false, outside: ["203.0.113.9"]),
  Case(
    name: "loopback", seen: ["127.0.0.1:4000 127.0.0.1:1 127.0.0.1:4000"],
    kind: .none, isCertain: false, outside: ["127.0.0.1"], isLocal: true),
  Case(
    name: "a modem's address of shared space",
    seen: ["100.64.0.7:4000 198.51.100.2:1 203.0.113.9:5000"],
    kind: .unknown, isCertain: false, outside: ["203.0.113.9"], isShared: true),
  Case(
    name: "seen in the provider's network",
    seen: ["192.168.1.2:4000 100.64.0.1:1 100.127.255.7:4000"],
    kind: .portKept, isCertain: false, outside: ["100.127.255.7"], isShared: true, isLocal: true),
  Case(
    name: "two of the provider's network",
    seen: [
      "192.168.1.2:4000 100.64.0.1:1 100.127.255.7:4000",
      "192.168.1.2:4000 100.64.0.2:1 100.127.255.7:4000",
    ],
    kind: .portKept, isCertain: false, outside: ["100.127.255.7"], isShared: true, isLocal: true),
  Case(
    name: "a private network over the internet, with addresses of shared space",
    seen: ["100.64.0.7:4000 100.64.0.1:1 100.64.0.7:4000"],
    kind: .none, isCertain: false, outside: ["100.64.0.7"], isLocal: true),
  Case(
    name: "just beside the shared space",
    seen: [
      "192.168.1.2:4000 198.51.100.2:1 100.128.0.1:4000",
      "192.168.1.2:4000 198.51.100.3:1 100.128.0.1:4000",
    ],
    kind: .portKept, isCertain: true, outside: ["100.128.0.1"]),
  Case(
    name: "unique local IPv6, translated",
    seen: [
      "[fd00::2]:4000 [2001:db8:1::1]:1 [2001:db8::9]:4000",
      "[fd00::2]:4000 [2001:db8:1::2]:1 [2001:db8::9]:4000",
    ],
    kind: .portKept, isCertain: true, outside: ["2001:db8::9"]),
]

struct NATMappingTests {
  @Test(arguments: cases) private func theObservedAddressesTellTheKind(_ one: Case) throws {
    let mapping = try #require(one.mapping)
    #expect(mapping.kind == one.kind)
    #expect(mapping.isCertain == one.isCertain)
    #expect(mapping.outside == one.outside.compactMap(host))
    #expect(mapping.isShared == one.isShared)
    #expect(mapping.isLocal == one.isLocal)
  }

  @Test func casesAreReadAsTheyStand() {
    for one in cases {
      #expect(one.seen.compactMap(observation).count == one.seen.count)
      #expect(one.outside.compactMap(host).count == one.outside.count)
    }
    #expect(NATMapping.Kind.allCases.allSatisfy { kind in cases.contains { $0.kind == kind } })
  }

  @Test(arguments: cases) private func theOrderOfTheAnswersSaysNothing(_ one: Case) {
    let observations = one.seen.compactMap(observation)
    #expect(NATMapping(observations.reversed()) == one.mapping)
  }

  @Test func noAnswerSaysNothing() {
    #expect(NATMapping([]) == nil)
  }
}
