import MusterBase
import MusterChannel
import MusterCrypto
import MusterWire
import Testing

/// The genesis of a created channel.
struct RightsGenesisTests {
  private let signed = Club(settings: ChannelSettings(callEndsWithInitiator: true)).genesis

  @Test func aSignedGenesisIsReadBack() {
    let read = SignedGenesis.verified(signed.bytes)
    #expect(read == signed)
    #expect(read?.genesis.name == "club")
    #expect(read?.genesis.settings.callEndsWithInitiator == true)
    #expect(read?.channelID == signed.channelID)
  }

  @Test func whateverIsChangedMakesItVoid() {
    for index in signed.bytes.indices {
      var changed = signed.bytes
      changed[index] ^= 1
      #expect(SignedGenesis.verified(changed) == nil, "byte \(index)")
    }
    for count in [0, 1, 63, 64, 65, signed.bytes.count - 1] {
      #expect(SignedGenesis.verified(Array(signed.bytes.prefix(count))) == nil)
    }
    #expect(SignedGenesis.verified(signed.bytes + [0]) == nil)
    #expect(SignedGenesis.verified([UInt8](repeating: 0, count: 10_000)) == nil)
  }

  @Test func anotherNonceMakesAnotherChannel() {
    var genesis = signed.genesis
    genesis.nonce[0] ^= 1
    #expect(SignedGenesis.sign(genesis, by: testIdentity(100)).channelID != signed.channelID)
  }
}
