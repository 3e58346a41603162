import MusterBase
import MusterCore
import MusterCrypto
import Testing

/// The room for links in a channel.
struct LinkRoomTests {
  private static let name = "links and room"
  private static let key = ChannelKey.fromName(name)

  /// A member may invent as many others as a node has room for.
  @Test(arguments: [false, true]) func manyKeysOfOneHostKeepNobodyOut(isAnotherHost: Bool) {
    let invented = 1...Limits.peersPerChannel
    let (late, count) = (Limits.peersPerChannel + 1, Limits.peersPerChannel + 2)
    var world = CoreWorld(count)
    world.speaks = { _ in false }
    // The others have links with the first one alone.
    world.passes = { from, to, _ in from == 0 || to == 0 }
    let host = Address.Host.v4(0x0A00_0100)
    for index in invented { world.move(index, to: Address(host: host, port: UInt16(index))) }
    if !isAnotherHost { world.move(late, to: Address(host: host, port: UInt16(late))) }
    func join(_ index: Int) {
      world.call(index) {
        $0.join(ChannelSetup(name: Self.name, key: Self.key), call: false, at: $1)
      }
    }
    for index in [0] + invented { join(index) }
    world.run(for: .seconds(4))
    func linked() -> [Int] {
      let peers = world.hosts[0].node.statistics(at: world.now).map(\.link.peer)
      return (1..<count).filter { peers.contains(world.id($0)) }
    }
    #expect(linked() == Array(invented))
    join(late)
    world.run(for: .seconds(2))
    #expect(linked().contains(late) == isAnotherHost)
    #expect(linked().count == Limits.peersPerChannel)
    #expect(world.hosts[0].node.checkInvariants() == [])
  }
}
