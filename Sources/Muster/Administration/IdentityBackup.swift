import FoundationEssentials
import MusterBase
import MusterCrypto
import MusterStore

/// Backups of an identity and the channels it remembers, sealed with a passphrase, behind
/// `muster identity`.
///
/// A backup has what a node needs to act as the same member and owner elsewhere: secret keys,
/// roles, and the keys of others that its user knows. Messages stay where they are.
public enum IdentityBackup {
  /// What a backup is of.
  public struct Summary: Codable, Equatable, Sendable {
    /// The identity's id, 16 hex digits.
    public var member: String
    /// The identity's full key, 64 hex digits.
    public var key: String
    /// The local names of the channels, oldest first.
    public var channels: [String]

    /// The JSON object that `--json` prints.
    public var json: JSONValue { JSONValue(encoding: self) }
  }

  /// The maximum number of bytes of a backup: what ten full channels take, and little of the memory
  /// of a machine on which another file was named by mistake.
  public static let limit = 64 << 20
  private static let context = "muster/1 identity backup"

  /// Seals the identity in a data directory, the default one if `data` is nil. The text is ASCII,
  /// in lines of at most 64 characters.
  ///
  /// Throws if there is no identity, a node is using the directory, or it cannot be read.
  public static func export(
    data: String?, passphrase: String
  ) async throws(MusterError) -> (text: String, summary: Summary) {
    let directory = try await opened(data)
    guard let identity = try directory.storedIdentity() else {
      throw MusterError(
        "there is no identity in \(directory.path) yet",
        hint: "name the directory with --data; muster join and muster channel create make one")
    }
    let name = directory.displayName()
    let store = try await Store.open(directory)
    let content = try await store.read { try Content(of: identity, named: name, in: $0) }
    await store.close()
    let plaintext: [UInt8]
    do { plaintext = try content.encoded() } catch {
      throw MusterError("the backup cannot be made (\(error))", hint: "check the data directory")
    }
    var entropy = Entropy.system
    let sealed = PassphraseSeal.seal(
      plaintext, passphrase: passphrase, context: context, entropy: &entropy)
    guard let sealed else { throw noMemory }
    let text = BackupArmour.text(of: sealed)
    guard text.utf8.count <= limit else {
      throw MusterError(
        "the backup would have more than \(limit >> 20) MiB",
        hint: "forget channels that you no longer need: muster channel forget NAME")
    }
    return (text, content.summary(of: identity))
  }

  /// Restores an identity and its channels into a data directory, the default one if `data` is nil.
  /// If the directory has the same identity, what it lacks is added.
  ///
  /// Throws, without a change, if the text is no backup or damaged, the passphrase is another one,
  /// a node is using the directory, or it has another identity. After a failed write, such as on a
  /// full disk, a part is restored; doing it again adds the rest.
  public static func restore(
    _ text: String, data: String?, passphrase: String
  ) async throws(MusterError) -> Summary {
    guard let sealed = BackupArmour.bytes(in: text) else {
      throw MusterError(
        "that is no backup of an identity", hint: "name a file that muster identity export wrote")
    }
    let plaintext: [UInt8]
    do {
      plaintext = try PassphraseSeal.open(sealed, passphrase: passphrase, context: context)
    } catch .noMemory { throw noMemory } catch {
      throw MusterError(
        "the passphrase is not the backup's, or the backup is damaged", hint: "try again")
    }
    guard let content = try? Content(decoding: plaintext), let identity = content.identity else {
      throw MusterError(
        "the backup was written by another version of muster", hint: "update this one")
    }
    let directory = try await opened(data)
    if let present = try directory.storedIdentity(), present.id != identity.id {
      throw MusterError(
        "\(directory.path) has another identity, \(present.id)",
        hint: "use --data with a new directory, or move this one away")
    }
    let store = try await Store.open(directory)
    // The identity comes first: a node that starts after a failure would make another one.
    try directory.store(identity)
    for channel in content.channels {
      try await store.write(try await store.read { try channel.changes(to: $0) })
    }
    await store.close()
    if let name = content.name, directory.displayName() == nil {
      directory.remember(displayName: name)
    }
    return content.summary(of: identity)
  }

  private static func opened(_ data: String?) async throws(MusterError) -> DataDirectory {
    let path = try Administration.path(of: data)
    let directory = try await Administration.retrying { () throws(MusterError) in
      try DataDirectory.open(path)
    }
    guard let directory else {
      throw MusterError(
        "the data directory \(path) is in use by \(DataDirectory.holderText(of: path))",
        hint: "end it first, or name another directory with --data")
    }
    return directory
  }

  private static var noMemory: MusterError {
    MusterError(
      "the passphrase cannot be used: \(PassphraseKey.memoryBytes >> 20) MiB of memory are needed",
      hint: "end other programs")
  }
}

/// The text form of a sealed backup: base64 (RFC 4648 section 4) between two marker lines, as in
/// PEM (RFC 7468).
///
/// Reading takes time in proportion to the bytes, whatever they are.
private enum BackupArmour {
  private static let begin = "-----BEGIN MUSTER IDENTITY-----"
  private static let end = "-----END MUSTER IDENTITY-----"

  static func text(of bytes: [UInt8]) -> String {
    let body = Data(bytes).base64EncodedString(
      options: [.lineLength64Characters, .endLineWithLineFeed])
    return "\(begin)\n\(body)\n\(end)\n"
  }

  /// The bytes between the marker lines, whatever lines stand around these; nil if there are none.
  static func bytes(in text: String) -> [UInt8]? {
    var text = text
    let body = text.withUTF8 { text -> Data? in
      var body: Data?
      var rest = text[...]
      while !rest.isEmpty {
        let line = rest.prefix { $0 != 0x0A }
        rest = rest.dropFirst(line.count + 1)
        let content = line.drop { $0 <= 0x20 }
        if body == nil {
          if isMarker(begin, content) { body = Data() }
        } else if isMarker(end, content) {
          return body
        } else {
          body?.append(contentsOf: content.filter { $0 > 0x20 })
        }
      }
      return nil
    }
    return body.flatMap { Data(base64Encoded: $0) }.map { Array($0) }
  }

  /// Whether a line without leading spaces is a marker, apart from spaces behind it.
  private static func isMarker(
    _ marker: String, _ line: Slice<UnsafeBufferPointer<UInt8>>
  ) -> Bool {
    line.starts(with: marker.utf8) && line.dropFirst(marker.utf8.count).allSatisfy { $0 <= 0x20 }
  }
}
