import MusterBase

/// This process's node in a distributed hash table (DHT). All methods can be called on any thread
/// and do not block; callbacks run on the DHT's thread.
package protocol HashTable: Sendable {
  /// Sets the bootstrap nodes, which are contacted again while no node answers.
  func bootstrap(_ addresses: [Address])
  /// Stores a value under a key for about ten minutes; calls `failed` if no node accepts it.
  func put(_ value: [UInt8], under tag: [UInt8], failed: @escaping @Sendable () -> Void)
  /// Calls `heard` for every value under a key, present and future, until `stopListening`.
  /// Listening to a key again has no effect.
  func listen(under tag: [UInt8], heard: @escaping @Sendable ([UInt8]) -> Void)
  /// Stops listening to a key.
  func stopListening(under tag: [UInt8])
  /// This node's addresses as observed by other DHT nodes, most frequently reported first.
  func seenAddresses() async -> [Address]
  /// Leaves the DHT; returns when the DHT has stopped, or after a short timeout.
  func stop() async
}

/// The DHT implementation of this build, if any.
public enum DHT {
  /// Whether this build supports `--dht`.
  public static var isBuiltIn: Bool {
    #if DHT
      true
    #else
      false
    #endif
  }

  #if DHT
    /// Joins the DHT; throws if no socket can be opened.
    package static func open() throws(MusterError) -> any HashTable { try OpenDHT() }
  #else
    /// Throws, because this build has no DHT.
    package static func open() throws(MusterError) -> any HashTable {
      throw MusterError(
        "this build has no DHT",
        hint: "build it with `swift build --traits DHT`, which needs libopendht-c-dev",
        kind: .usage)
    }
  #endif
}
