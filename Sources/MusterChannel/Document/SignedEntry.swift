import MusterBase
import MusterCrypto
import MusterWire

/// The id of an entry: BLAKE2b-256 over its bytes and signature.
public typealias EntryID = Bytes32

/// An entry with the verified signature of its author.
///
/// Copies share storage: documents, outboxes and logs all refer to the same bytes.
public struct SignedEntry: Sendable {
  private final class Storage: Sendable {
    let entry: Entry
    let bytes: [UInt8]
    let id: EntryID

    init(entry: Entry, bytes: [UInt8]) {
      self.entry = entry
      self.bytes = bytes
      id = SignedEntry.id(of: bytes)
    }
  }

  private let storage: Storage

  /// The decoded entry, whose signature has been verified.
  public var entry: Entry { storage.entry }
  /// The wire format: the encoded entry followed by its signature.
  public var bytes: [UInt8] { storage.bytes }
  /// BLAKE2b-256 of `bytes`, the signature included.
  public var id: EntryID { storage.id }

  /// Why bytes are not a valid signed entry.
  public enum Fault: Error, Equatable, Sendable {
    case malformed
    case forged
  }

  /// Signs `entry`, whose author must be `identity`, for one channel.
  public static func sign(
    _ entry: Entry, by identity: Identity, in channel: ChannelID
  ) -> SignedEntry {
    let bytes = entry.encoded()
    let signature = identity.sign(message(bytes[...], in: channel))
    return SignedEntry(storage: Storage(entry: entry, bytes: bytes + signature))
  }

  /// The entry in `bytes`, if its author's signature is valid for `channel`. Throws `malformed` for
  /// bytes that do not decode, `forged` for an invalid signature.
  public static func verified(
    _ bytes: [UInt8], in channel: ChannelID
  ) throws(Fault) -> SignedEntry {
    guard bytes.count > Entry.signatureBytes, bytes.count <= Limits.entryBytes else {
      throw .malformed
    }
    let signed = bytes.dropLast(Entry.signatureBytes)
    let entry: Entry
    do { entry = try Entry(decoding: signed) } catch { throw .malformed }
    let isGenuine = Signatures.isValid(
      bytes.suffix(Entry.signatureBytes), of: message(signed, in: channel), by: entry.author)
    guard isGenuine else { throw .forged }
    return SignedEntry(storage: Storage(entry: entry, bytes: bytes))
  }

  /// The id of the entry with these bytes, which include the signature.
  public static func id(of bytes: [UInt8]) -> EntryID {
    guard let id = EntryID(Blake2b.hash(bytes)) else { preconditionFailure("32 bytes by argument") }
    return id
  }

  private static func message(_ bytes: ArraySlice<UInt8>, in channel: ChannelID) -> [UInt8] {
    Array("muster/1 entry".utf8) + channel.hash.bytes + bytes
  }
}

extension SignedEntry: Comparable {
  public static func == (a: SignedEntry, b: SignedEntry) -> Bool {
    a.storage === b.storage || a.id == b.id
  }

  /// Document order: total, the same on every node, and consistent with causality as far as Lamport
  /// counters reflect it.
  public static func < (a: SignedEntry, b: SignedEntry) -> Bool {
    let (x, y) = (a.entry, b.entry)
    if x.lamport != y.lamport { return x.lamport < y.lamport }
    if x.author != y.author { return x.author < y.author }
    if x.sequence != y.sequence { return x.sequence < y.sequence }
    return a.id < b.id
  }
}
