import MusterBase

/// An attacker without keys that records all traffic, and sends noise and recorded datagrams,
/// intact or altered, from its own addresses or under forged addresses of members.
struct Attacker: Sendable {
  struct Recording: Sendable {
    let datagram: [UInt8]
    let from: Address
    let to: Address
  }

  static let memory = 64
  static let longestNoise = 1300

  private let addresses: [Address]
  private var recordings = RingBuffer<Recording>(capacity: memory)

  init(addresses: [Address]) { self.addresses = addresses }

  /// Records a datagram after its delivery; a copy sent before the original arrives would not be a
  /// replay.
  mutating func hear(_ recording: Recording) { recordings.append(recording) }

  /// The attacker's next datagram: noise, or a recorded datagram, intact or altered; nil without
  /// targets or without an address of the attacker.
  func attack(_ targets: [Address], _ prng: inout PRNG) -> Recording? {
    guard !targets.isEmpty, !addresses.isEmpty else { return nil }
    let target = targets[prng.below(targets.count)]
    let own = addresses[prng.below(addresses.count)]
    guard recordings.count > 0, prng.chance(0.8) else {
      return Recording(
        datagram: noise(&prng), from: prng.chance(0.5) ? own : targets[0], to: target)
    }
    let heard = recordings[prng.below(recordings.count)]
    let receiver = prng.chance(0.8) ? heard.to : target
    switch prng.below(4) {
    case 0:
      let piece = Array(heard.datagram.prefix(prng.below(max(heard.datagram.count, 1))))
      return Recording(datagram: piece, from: own, to: receiver)
    case 1:
      let altered = Network.corrupted(heard.datagram, &prng)
      return Recording(datagram: altered, from: own, to: receiver)
    case 2: return Recording(datagram: heard.datagram, from: heard.from, to: receiver)
    default: return Recording(datagram: heard.datagram, from: own, to: receiver)
    }
  }

  private func noise(_ prng: inout PRNG) -> [UInt8] {
    var noise = prng.bytes(prng.below(Self.longestNoise))
    let kinds: [UInt8] = [0x01, 0x02, 0x10, 0x11, 0x12, 0x20]
    if !noise.isEmpty, prng.chance(0.8) { noise[0] = kinds[prng.below(kinds.count)] }
    return noise
  }
}
