import MusterBase
import MusterChannel

/// The part of a node's outputs that concerns the disk: changes to write, and messages to show once
/// they are written. The shell, administration and the simulations collect it in the same way.
///
/// The order of the requests is the order of the writes. Messages are shown once `changes` are
/// durable, among them the notes that they were shown (`Node.Change.delivered`), so that each is
/// shown once. Those of this node alone need not wait for these notes: its commit has written them,
/// and a crash makes the next process show them again.
public struct NodeWrites: Sendable {
  /// A change that the node does not wait for.
  public struct Write: Equatable, Sendable {
    /// The change to write.
    public var change: Node.Change
    /// The channel that it belongs to.
    public var channel: ChannelID
  }

  /// Changes to be written together, whose outcome `Node.finish` needs.
  public struct Commit: Equatable, Sendable {
    /// The changes, all or none of which take effect.
    public var changes: [Node.Change]
    /// The argument of `Node.finish`, with the channel of the changes.
    public var id: CommitID
  }

  /// A message to show to users.
  public struct Shown: Equatable, Sendable {
    /// The message.
    public var message: TextMessage
    /// The channel that it belongs to.
    public var channel: ChannelID
  }

  /// The changes that the node does not wait for, in order.
  public private(set) var changes: [Write] = []
  /// The commits, in order; they are written after `changes`.
  public private(set) var commits: [Commit] = []
  /// The messages to show, in order, and after those that were requested before.
  public private(set) var messages: [Shown] = []

  /// Without writes.
  public init() {}

  /// Collects an output that concerns the disk; returns false for every other output, which the
  /// host executes at once.
  @discardableResult
  public mutating func take(_ output: Node.Output) -> Bool {
    switch output {
    case .write(let change, let channel): changes.append(Write(change: change, channel: channel))
    case .commit(let changes, let id): commits.append(Commit(changes: changes, id: id))
    case .event(.channel(.message(let message)), let channel):
      messages.append(Shown(message: message, channel: channel))
    case .send, .broadcast, .event, .encode, .encodeKeyframe, .encodeLongPackets, .show, .play,
      .mediaEnded:
      return false
    }
    return true
  }

  /// Whether the messages need not wait for `changes`: all are of this node.
  public func showsOnlyMessages(of own: NodeID) -> Bool {
    !messages.isEmpty && messages.allSatisfy { $0.message.from == own }
  }

  /// Collects the outputs that concern the disk, and returns the others in their order.
  public mutating func take(_ outputs: [Node.Output]) -> [Node.Output] {
    outputs.filter { !take($0) }
  }
}
