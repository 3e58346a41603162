import MusterBase

/// This process's part in a distributed hash table (DHT), which many nodes hold together without a
/// server. Everything here returns at once, on any thread; what it calls is called on its own.
package protocol HashTable: Sendable {
  /// Nodes of the DHT to begin with: they are asked again while none answers.
  func bootstrap(_ addresses: [Address])
  /// Leaves a value under a tag, for some ten minutes.
  func put(_ value: [UInt8], under tag: [UInt8], failed: @escaping @Sendable () -> Void)
  /// Calls `heard` for every value that is under a tag, or comes there later, until
  /// `stopListening`. A tag that is listened under already stays as it is.
  func listen(under tag: [UInt8], heard: @escaping @Sendable ([UInt8]) -> Void)
  func stopListening(under tag: [UInt8])
  /// Where other nodes of the DHT see this one, those that most of them say first.
  func seenAddresses() async -> [Address]
  /// Ends it; nothing is called after that.
  func stop() async
}

/// The DHT of this build, if it has one: the only place that tells one build from the other.
public enum DHT {
  /// Whether `--dht` works.
  public static var isBuiltIn: Bool {
    #if DHT
      true
    #else
      false
    #endif
  }

  #if DHT
    package static func open() throws(MusterError) -> any HashTable { try OpenDHT() }
  #else
    package static func open() throws(MusterError) -> any HashTable {
      throw MusterError(
        "this build has no DHT",
        hint: "build it with `swift build --traits DHT`, which needs libopendht-c-dev",
        kind: .usage)
    }
  #endif
}
