import MusterBase
import MusterLink
import Testing

/// Two nodes with an IPv4 and an IPv6 address each, which discovery reports in any order.
struct DualStackTests {
  private static func v6(_ node: Int) -> Route {
    .direct(Address(host: .v6(high: 0xFD00 << 48, low: UInt64(node) + 1, zone: 0), port: 1000))
  }

  private func world(delay: Duration = .milliseconds(1)) -> LinkWorld {
    let world = LinkWorld(2)
    world.delay = delay
    for node in 0..<2 {
      world.nodes[node].v6 = Self.v6(node)
      world.nodes[node].reachableAt.append(Self.v6(node))
    }
    return world
  }

  private func route(_ node: Int, in world: LinkWorld) -> Route? {
    world.nodes[node].engine.route(of: world.link(to: 1 - node))
  }

  private func moves(_ node: Int, in world: LinkWorld) -> Int {
    world.states(node).count { if case .moved = $0 { true } else { false } }
  }

  private func isV6(_ node: Int, in world: LinkWorld) -> Bool? {
    route(node, in: world)?.address?.isIPv6
  }

  /// Both nodes send a packet of audio.
  private func say(in world: LinkWorld) {
    for node in 0..<2 { world.say("I", from: node, to: 1 - node) }
    world.run(for: .milliseconds(20))
  }

  /// Both nodes send every 20 ms; discovery reports all addresses of both, once a second.
  private func talk(_ seconds: Int, in world: LinkWorld) {
    for step in 0..<(seconds * 50) {
      say(in: world)
      guard step % 50 == 0 else { continue }
      for node in 0..<2 {
        world.connect(node, to: 1 - node)
        world.connect(node, to: 1 - node, at: Self.v6(1 - node))
      }
    }
  }

  /// Whether node 0 and node 1 first find the peer at its IPv6 address.
  @Test(arguments: [[false, false], [false, true], [true, false], [true, true]], [1, 20])
  func bothEndsSoonUseOnePathAndKeepIt(v6First: [Bool], delay: Int) {
    let world = world(delay: .milliseconds(Int64(delay)))
    for isSecond in [false, true] {
      for node in 0..<2 {
        let isV6 = v6First[node] != isSecond
        world.connect(node, to: 1 - node, at: isV6 ? Self.v6(1 - node) : nil)
        world.run(for: .milliseconds(3))
      }
    }
    world.run(for: .milliseconds(300))
    talk(1, in: world)
    #expect(isV6(0, in: world) == isV6(1, in: world))
    talk(30, in: world)
    #expect(isV6(0, in: world) == isV6(1, in: world))
    #expect(moves(0, in: world) <= 1 && moves(1, in: world) <= 1)
  }

  /// Each end of a new link starts on the path of its handshake, although discovery has found
  /// another address of the responder meanwhile.
  @Test(arguments: [0, 1])
  func aLinkBeginsWithThePathOfItsHandshake(initiator: Int) {
    let world = world(delay: .milliseconds(20))
    world.connect(initiator, to: 1 - initiator)
    world.run(for: .milliseconds(5))
    world.connect(initiator, to: 1 - initiator, at: Self.v6(1 - initiator))
    world.run(for: .milliseconds(200))
    #expect(isV6(0, in: world) == false && isV6(1, in: world) == false)
    #expect(moves(0, in: world) == 0 && moves(1, in: world) == 0)
  }

  /// IPv4 fails in both directions while the nodes talk.
  @Test func aPathThatDiesIsLeftForTheOtherDirectOne() {
    let world = world()
    world.connect(0, to: 1)
    world.run(for: .milliseconds(200))
    talk(2, in: world)
    #expect(isV6(0, in: world) == false && isV6(1, in: world) == false)
    world.passes = { $0.to.address?.isIPv6 ?? false }
    world.run(for: .milliseconds(200))
    for node in 0..<2 { world.check(node, to: 1 - node) }
    world.run(for: .milliseconds(70))
    #expect(isV6(0, in: world) == true && isV6(1, in: world) == true)
    #expect(moves(0, in: world) == 1 && moves(1, in: world) == 1)
  }

  @Test func aPathThatIsMerelyQuietIsKept() {
    let world = world()
    world.connect(0, to: 1)
    world.run(for: .milliseconds(200))
    talk(2, in: world)
    let before = world.nodes[0].engine.liveness(of: world.link(to: 1))?.lastAt
    world.run(for: .milliseconds(500))
    for node in 0..<2 { world.check(node, to: 1 - node) }
    world.run(for: .seconds(2))
    #expect(moves(0, in: world) == 0 && moves(1, in: world) == 0)
    // The answer shows that the path works.
    let after = world.nodes[0].engine.liveness(of: world.link(to: 1))?.lastAt
    #expect(before.flatMap { before in after.map { $0 - before > .milliseconds(450) } } ?? false)
  }

  /// The end that does not select the path knows of an IPv6 address; the other end has only heard
  /// of a public IPv4 address.
  @Test func theFollowingEndsFindIsComparedByTheOther() {
    let world = world()
    let far = Route.direct(Address(host: .v4(0xC633_6407), port: 1000))
    world.nodes[0].route = .direct(Address(host: .v4(0xC633_6406), port: 1000))
    world.nodes[1].route = far
    world.nodes[0].reachableAt = [world.nodes[0].route, Self.v6(0)]
    world.nodes[1].reachableAt = [far, Self.v6(1)]
    world.connect(0, to: 1)
    world.run(for: .milliseconds(200))
    #expect(isV6(0, in: world) == false)
    for _ in 0..<50 { say(in: world) }
    world.connect(1, to: 0, at: Self.v6(0))
    for _ in 0..<50 { say(in: world) }
    #expect(isV6(0, in: world) == true && isV6(1, in: world) == true)
    #expect(moves(0, in: world) == 1 && moves(1, in: world) == 1)
  }

  /// The peer has lost the address that this end sends to, and sends from another one.
  @Test(arguments: [0, 1])
  func aPeerWhoseAddressVanishesIsFollowed(mover: Int) {
    let world = world()
    world.connect(0, to: 1)
    world.run(for: .milliseconds(200))
    talk(2, in: world)
    let new = Route.direct(Address(host: .v4(0x0A00_0063), port: 1000))
    world.nodes[mover].route = new
    world.nodes[mover].v6 = nil
    world.nodes[mover].reachableAt = [new]
    var gap = 0
    for _ in 0..<50 {
      say(in: world)
      if route(1 - mover, in: world) != new { gap += 20 }
    }
    #expect(route(1 - mover, in: world) == new && gap <= 100, "after \(gap) ms")
  }
}
