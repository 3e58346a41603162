import MusterBase
import MusterChannel
import MusterCongestion
import MusterCore
import MusterCrypto
import MusterMedia
import MusterSimulator
import MusterWire
import Testing

/// Nodes of which the first comes late to its datagrams for a while.
private struct SlowNode {
  static let name = "\(Marker.text) slow"
  static let key = ChannelKey.fromName(name)
  let channel = key.channelID
  var world: CoreWorld

  init(_ count: Int) {
    world = CoreWorld(count)
    world.delay = .milliseconds(1)
    for index in world.hosts.indices { world.offer(3, of: .camera, by: index) }
    world.join(Self.name, Self.key)
    world.run(for: .seconds(5))
  }

  var steps: [CPUAdaptation.Step] {
    world.hosts[0].events.compactMap { if case .cpu(let step) = $0 { step } else { nil } }
  }

  func layers(_ direction: LayerDirection, with other: Int) -> [LayerChange] {
    let id = world.id(other)
    return world.hosts[0].events.compactMap {
      if case .layer(id, .camera, direction, let change) = $0 { change } else { nil }
    }
  }
}

struct CPUTests {
  @Test func aNodeThatComesLateToItsDatagramsGivesUpVideoAndTakesItBack() throws {
    var slow = SlowNode(4)
    #expect(slow.steps.isEmpty)
    slow.world.hosts.forEach { $0.clear() }
    slow.world.lag = { index in index == 0 ? .milliseconds(60) : .zero }
    slow.world.run(for: .seconds(5))
    #expect(slow.steps.last == .longPackets)
    let last = slow.world.id(3)
    #expect(slow.layers(.received, with: 3).last?.why == .cpu)
    let sent = try #require(slow.layers(.sent, with: 3).last)
    #expect(sent.why == .cpu && sent.to.map { $0.size.height < 360 } ?? false)
    // The paths are as wide as before, and so are the others' pictures of each other.
    #expect(
      !slow.world.hosts[1].events.contains { event in
        if case .layer(last, _, _, _) = event { true } else { false }
      })
    for index in 1..<4 {
      let silence = try #require(slow.world.longestSilence(from: index, to: 0))
      #expect(silence <= .milliseconds(100), "audio is never given up")
      let estimate = try #require(slow.world.estimate(from: index, to: 0, in: slow.channel))
      #expect(estimate > DataRate(kbps: 300))
    }
    slow.world.lag = { _ in .zero }
    slow.world.run(for: .seconds(6))
    #expect(slow.steps.last == .nothing)
    #expect(slow.layers(.received, with: 3).last?.to?.size.height == 360)
  }

  @Test func nothingIsMeasuredOutsideOfCalls() {
    var slow = SlowNode(2)
    slow.world.command(0) { $0.leaveCall(in: slow.channel, at: $1) }
    slow.world.lag = { _ in .milliseconds(60) }
    slow.world.run(for: .seconds(5))
    #expect(slow.steps.isEmpty)
  }
}
