import MusterBase
import MusterChannel
import MusterCore
import MusterCrypto
import MusterMedia
import MusterSimulator
import MusterWire
import Testing

/// Two nodes in a call whose path fails for a while.
private struct Outage {
  var world = CoreWorld(2, seed: 11)
  private let channel: ChannelID

  init() {
    let key = ChannelKey.fromName("\(Marker.text) outage")
    world.join("outage", key)
    channel = world.hosts[0].node.channelIDs[0]
    world.run(for: .seconds(10))
  }

  private var shown: Int {
    world.hosts[1].shown[LinkID(channel: channel, peer: world.id(0))] ?? 0
  }

  /// The times after the outage at which the first audio and the third frame arrive.
  mutating func back(after duration: Duration) -> (audio: Duration, video: Duration)? {
    world.passes = { _, _, _ in false }
    world.run(for: duration)
    world.passes = { _, _, _ in true }
    world.hosts[1].clear()
    let (start, frames) = (world.now, shown)
    while shown < frames + 3 {
      world.run(for: .milliseconds(20))
      guard world.now - start < .seconds(30) else { return nil }
    }
    let audio = world.hosts[1].heard[world.id(0)]?.first
    return audio.map { ($0 - start, world.now - start) }
  }
}

/// Whether the members have noticed the outage or not.
@Test(arguments: [2, 5, 10, 12, 30]) func theVideoIsBackWithTheAudio(seconds: Int) throws {
  var outage = Outage()
  let first = outage.back(after: .seconds(seconds))
  let back = try #require(first)
  #expect(back.video - back.audio <= .seconds(2), "\(back)")
  let second = outage.back(after: .seconds(seconds))
  let again = try #require(second)
  #expect(again.video - again.audio <= .seconds(2), "\(again)")
  outage.world.run(for: .seconds(2))
  let reasons = outage.world.hosts[0].node.statistics(at: outage.world.now).map(\.sent?.why)
  #expect(reasons == [.started])
}

/// The ends of calls and memberships that a node reports, but not its own.
private func departures(_ host: CoreWorld.Host) -> [ChannelEvent] {
  host.events.compactMap { event in
    switch event {
    case .channel(.callLeft(_, let member, _)) where member == host.node.id: nil
    case .channel(let event):
      switch event {
      case .callLeft, .memberLeft, .callEnded: event
      default: nil
      }
    default: nil
    }
  }
}

@Test func leavingAChannelIsNotTheDepartureOfTheOthers() {
  var world = CoreWorld(3, seed: 12)
  let key = ChannelKey.fromName("\(Marker.text) departure")
  world.join("departure", key)
  world.run(for: .seconds(3))
  let channel = world.hosts[0].node.channelIDs[0]
  // The initiator stays: it would end the call.
  let initiator = world.activeCall(0, in: channel)?.info.initiator
  let leaver = world.hosts.indices.first { world.id($0) != initiator } ?? 0
  for host in world.hosts { host.clear() }
  world.call(leaver) { $0.leave(channel, at: $1) }
  world.run(for: .milliseconds(500))
  world.call(leaver) { $0.finishLeaving(channel, at: $1) }
  world.run(for: .seconds(5))
  #expect(departures(world.hosts[leaver]) == [])
  for index in world.hosts.indices where index != leaver {
    #expect(departures(world.hosts[index]).count == 2)
  }
}
