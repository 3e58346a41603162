import Muster
import MusterBase
import MusterCrypto

/// A test of multicast on an interface: two nodes try to discover each other there.
enum MulticastProbe {
  /// The timeout of the test; on a working network the test takes a few milliseconds.
  private static let patience = Duration.milliseconds(1500)

  static func isHeard(on interface: String) async -> Bool {
    var entropy = Entropy.system
    guard let key = ChannelKey(secret: entropy.bytes(32)) else { return false }
    var configuration = Configuration()
    configuration.name = "doctor"
    configuration.channels = [Configuration.Channel(name: "doctor", source: .open(key))]
    configuration.interfaces = [interface]
    configuration.isEphemeral = true
    guard let first = try? await MusterNode.start(configuration),
      let second = try? await MusterNode.start(configuration)
    else { return false }
    let timeout = Task {
      try? await Task.sleep(for: patience)
      await second.stop()
    }
    var isHeard = false
    for await event in second.events() {
      guard case .memberJoined = event.event else { continue }
      isHeard = true
      break
    }
    timeout.cancel()
    await first.stop()
    await second.stop()
    return isHeard
  }
}
