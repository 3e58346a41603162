import MusterBase
import MusterCrypto

let testKey = ChannelKey.fromName("mesh tests")
let otherKey = ChannelKey.fromName("another channel")

func testIdentity(_ number: UInt64) -> Identity {
  var entropy = Entropy.seeded(number)
  return Identity(generating: &entropy)
}

func seconds(_ seconds: Double) -> Instant {
  Instant(nanoseconds: Int64(seconds * 1_000_000_000))
}
