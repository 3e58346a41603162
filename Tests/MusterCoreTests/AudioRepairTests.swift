import MusterBase
import MusterCore
import MusterCrypto
import MusterMedia
import MusterSimulator
import MusterWire
import Testing

/// Two nodes in a call, whose datagrams are lost at random.
private struct Call {
  static let key = ChannelKey.fromName("\(Marker.text) audio")
  var world = CoreWorld(2, seed: 21)

  init(delay: Duration = .milliseconds(10)) {
    world.delay = delay
    world.join("audio", Self.key)
    world.run(for: .seconds(8))
    world.hosts[1].clear()
  }

  /// The number of packets of audio that the second node has heard.
  var heard: Int { world.hosts[1].heard[world.id(0)]?.count ?? 0 }

  /// Loses data packets at random.
  mutating func lose(percent: Int) {
    var random = PRNG(seed: 4)
    world.passes = { _, _, kind in kind != .data || random.below(100) >= percent }
  }
}

@Test func lostAudioComesAgain() {
  var call = Call()
  call.lose(percent: 10)
  call.world.run(for: .seconds(10))
  #expect((495...500).contains(call.heard), "\(call.heard)")
}

@Test func aMutedNodeRetransmitsNothing() {
  var call = Call()
  call.world.passes = { from, _, _ in from != 0 }
  call.world.run(for: .milliseconds(100))
  call.world.passes = { _, _, _ in true }
  call.world.run(for: .milliseconds(20))
  call.world.command(0) { $0.setMuted(audio: true, at: $1) }
  let heard = call.heard
  call.world.run(for: .seconds(2))
  #expect((heard...heard + 1).contains(call.heard), "\(call.heard - heard)")
}

@Test func copiesReplaceLostAudioWhereARequestTakesTooLong() {
  var call = Call(delay: .milliseconds(110))
  call.lose(percent: 10)
  call.world.run(for: .seconds(8))
  call.world.hosts[1].clear()
  call.world.run(for: .seconds(10))
  #expect((485...500).contains(call.heard), "\(call.heard)")
}
