import Muster
import MusterBase
import MusterNetwork
import Testing

private func read(_ text: String) -> String? {
  (try? PeerResolver.Endpoint(text, option: "--peer"))?.text
}

@Test(arguments: [
  "host:1", "a-b.c_d.example.org.:65535", "192.0.2.7:4711", "[::1]:4711",
  "[2001:db8::192.0.2.7]:1", "[fe80::1%eth0.5]:1",
])
func namesAndAddressesAreEndpoints(text: String) {
  #expect(read(text) == text)
}

@Test(arguments: [
  "$(reboot):1", "a;reboot:1", "a`id`:1", "a|b:1", "a&b:1", "a b:1", "a'b:1", "a\"b:1", "a\\:1",
  "a>b:1", "a\nb:1", "\u{1B}[2J:1", "*:1", "~root:1", "#a:1", "!a:1", "\u{E4}:1", "-rf:1", "[-a]:1",
  "[$(reboot)]:1", "[a;b]:1", "[::1:1", "::1]:1", "::1:1", "a%b:1", "[[::1]]:1",
])
func charactersOfShellsAndTerminalsAreNoEndpoint(text: String) {
  #expect(read(text) == nil)
}

@Test(arguments: ["", ":", "a", "a:", ":1", "[]:1", "a:65536", "a:-1", "a:1;id"])
func anEndpointHasAHostAndAPort(text: String) {
  #expect(read(text) == nil)
}

/// What an invite names serves its channel alone, unless the user has named it, too.
@Test func anEndpointServesTheChannelsThatNameIt() throws {
  let (lab, crew) = (ChannelID(bytes32(1)), ChannelID(bytes32(2)))
  var names = PeerResolver(endpoints: [try .init("own:1", option: "--peer")])
  names.add(["own:1", "a:1", "a;b:1", "b:1"], for: lab, limit: 3)
  names.add(["a:1", "c:1"], for: crew, limit: 3)
  let served = names.entries.map { [$0.serves(lab), $0.serves(crew)] }
  #expect(served == [[true, true], [true, true], [true, false]])
  names.remove(lab)
  #expect(names.entries.map(\.endpoint.text) == ["own:1", "a:1"])
  #expect(names.entries.map(\.channels) == [nil, [crew]])
}

@Test func theErrorSaysWhatTheOptionTakes() {
  #expect(throws: MusterError.self) { try PeerResolver.Endpoint("a;b:1", option: "--peer") }
}
