import MusterBase
import MusterCrypto
import MusterWire

/// A hello followed by its author's signature, as `Control.hello` carries it.
public enum SignedHello {
  public static let signatureBytes = 64

  /// What is wrong with bytes that claim to be a signed hello.
  public enum Fault: Error, Equatable, Sendable {
    case malformed
    case forged
  }

  /// Signs `hello` as `identity` for one channel.
  public static func encode(
    _ hello: Hello, by identity: Identity, in channel: ChannelID
  ) -> [UInt8] {
    let bytes = hello.encoded()
    return bytes + identity.sign(message(bytes[...], in: channel))
  }

  /// The hello, once its author's signature is found good for `channel`.
  public static func verified(
    _ signed: [UInt8], in channel: ChannelID
  ) throws(Fault) -> Hello {
    guard signed.count > signatureBytes, signed.count <= Limits.datagramBytes else {
      throw .malformed
    }
    let bytes = signed.dropLast(signatureBytes)
    let hello: Hello
    do { hello = try Hello(decoding: bytes) } catch { throw .malformed }
    let isGenuine = Signatures.isValid(
      signed.suffix(signatureBytes), of: message(bytes, in: channel), by: hello.author)
    guard isGenuine else { throw .forged }
    return hello
  }

  private static func message(_ bytes: ArraySlice<UInt8>, in channel: ChannelID) -> [UInt8] {
    Array("muster/1 hello".utf8) + channel.key.bytes + bytes
  }
}
