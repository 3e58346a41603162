import MusterBase
import MusterCore
import MusterCrypto
import MusterStore
import MusterSystem
import MusterWire

/// The identity of a node and the directory in which it is stored.
extension MusterNode {
  typealias OpenedIdentity = (
    identity: Identity, directory: DataDirectory?, store: Store?, warnings: [MusterError]
  )

  /// Opens the data directory and reads the identity. The identity is temporary if the
  /// configuration is ephemeral or, with a warning, if the default directory is unknown or in use;
  /// a configured directory in use is an error.
  static func openIdentity(
    _ configuration: Configuration
  ) async throws(MusterError) -> OpenedIdentity {
    if let path = configuration.dataDirectory {
      guard let directory = try await locked(path) else {
        throw MusterError(
          "the data directory \(path) is in use by \(DataDirectory.holderText(of: path))",
          hint: "end that process, or use --data with another directory")
      }
      return try await opened(directory)
    }
    var entropy = Entropy.system
    if configuration.isEphemeral { return (Identity(generating: &entropy), nil, nil, []) }
    guard let path = DataDirectory.defaultPath else {
      let warning = MusterError(
        "neither XDG_DATA_HOME nor HOME is set, so the identity is not kept",
        hint: "use --data DIR to keep it")
      return (Identity(generating: &entropy), nil, nil, [warning])
    }
    if let directory = try await locked(path) {
      return try await opened(directory)
    }
    let warning = MusterError(
      "the data directory \(path) is in use by \(DataDirectory.holderText(of: path)), so this node "
        + "has a fresh identity that is not kept",
      hint: "use --data DIR to give it one of its own")
    return (Identity(generating: &entropy), nil, nil, [warning])
  }

  /// Reads the identity, or makes it, which waits for the disk.
  private static func opened(
    _ directory: DataDirectory
  ) async throws(MusterError) -> OpenedIdentity {
    let identity = await WorkerThread.value("muster-identity") {
      Result { () throws(MusterError) in try directory.identity() }
    }
    return (try identity.get(), directory, try await Store.open(directory), [])
  }

  /// A data directory for this node: waits for a short command that uses it. Nil if a node does, or
  /// if it is not free within 3 s.
  private static func locked(_ path: String) async throws(MusterError) -> DataDirectory? {
    enum Attempt {
      case opened(DataDirectory)
      case usedByNode
    }
    let attempt = try await Administration.retrying { () throws(MusterError) -> Attempt? in
      if let directory = try DataDirectory.open(path, as: .node) { return .opened(directory) }
      return DataDirectory.holder(of: path)?.use == .node ? .usedByNode : nil
    }
    guard case .opened(let directory) = attempt else { return nil }
    return directory
  }

  /// The part of the configuration that the `Node` value needs.
  static func core(_ configuration: Configuration) -> Node.Configuration {
    var core = Node.Configuration()
    core.policy = configuration.policy
    core.answersCalls = configuration.answersCalls
    core.offersRendezvous = configuration.offersRendezvous
    core.relays = configuration.relays
    core.videoBitrate = configuration.videoBitrate
    core.uplink = configuration.uplink
    core.name = DisplayText.sanitized(configuration.name, limit: Limits.nameBytes)
    if configuration.audioMuted { core.muted.insert(.audio) }
    if configuration.videoMuted { core.muted.insert(.video) }
    let most = configuration.maxVideo.map {
      VideoRequest($0, framesPerSecond: configuration.maxFramesPerSecond)
    }
    core.shownLimit = most ?? .best
    core.maxStreams = configuration.maxStreams
    core.requestedBesidesViewer = configuration.recordDirectory == nil ? .none : most ?? .best
    core.requested = most ?? core.requestedBesidesViewer
    return core
  }
}
