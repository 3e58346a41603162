import MusterBase
import MusterChannel
import MusterStore
import MusterWire

/// The requests behind `muster channel`, `invite`, `verify`, `ping` and `doctor --node`, served
/// from the data directory or by the node that is using it.
public enum Administration {
  /// One question or change, as `Command.administer` carries it.
  public struct Request: Equatable, Sendable {
    /// The request's name in JSON, the value of `do`.
    public enum Verb: String, Codable, Sendable, CaseIterable {
      case create, list, show, grant, revoke, invite, verify
      /// Round trips to a member; only with a running node.
      case ping
      /// Counters, links and queues; only with a running node.
      case diagnose

      /// Whether only a running node can answer.
      public var needsNode: Bool { self == .ping || self == .diagnose }
    }

    /// The action requested.
    public var verb: Verb
    /// A channel's name.
    public var channel: String?
    /// An id, a full key, or a name.
    public var member: String?
    /// The role to give; nil for the default, attendee.
    public var role: Role?
    /// Seconds since 1970; nil for never.
    public var expiresAt: UInt64?
    /// `HOST:PORT` hints of an invite.
    public var peers: [String] = []
    /// `HOST:PORT` of rendezvous, for an invite.
    public var rendezvous: [String] = []
    /// The rules for calls in a channel to be created.
    public var settings = ChannelSettings()
    /// For verify: the codes were found to be the same.
    public var confirm = false

    /// A request without any further fields.
    public init(_ verb: Verb) { self.verb = verb }
  }

  /// The answer, as `--json` prints it and the control socket carries it.
  public struct Reply: Equatable, Sendable {
    /// The URL, for `invite`.
    public var invite: String?
    /// The digits to compare, for `verify`.
    public var code: String?
    /// The channels asked for, or the one created.
    public var channels: [ChannelSummary] = []
    /// Round trips, for `ping`.
    public var ping: PingReply?
    /// Counters, links and queues, for `diagnose`.
    public var node: NodeReport?
    /// The error message; if present, the other fields are meaningless.
    var failure: Failure?

    struct Failure: Codable, Equatable, Sendable {
      var message: String
      var hint: String
      var isUsage: Bool
    }

    /// An answer with nothing in it.
    public init() {}
  }

  /// A channel as the store has it.
  public struct ChannelSummary: Codable, Equatable, Sendable {
    /// `created` channels have an owner and roles.
    public enum Kind: String, Codable, Sendable { case created, open }

    /// The name that the member chose.
    public var name: String
    /// 64 hex digits.
    public var id: String
    /// Whether it has an owner and roles.
    public var kind: Kind
    /// The owner's full key; nil for open channels.
    public var owner: String?
    /// Whether that is this node's identity.
    public var isOwner: Bool
    /// The number of changes of the channel's key.
    public var epoch: UInt32
    /// Seconds since 1970.
    public var createdAt: UInt64
    /// Whether a call ends when its initiator vanishes, and is not handed over.
    public var callEndsWithInitiator: Bool
    /// Whether attendees may only watch.
    public var onlyPresentersSend: Bool
    /// Everyone with a role, or seen before, in no order.
    public var members: [MemberSummary] = []

    /// Whether the channel has an owner and roles.
    public var isCreated: Bool { kind == .created }
  }

  /// A member of a channel as the store has it.
  public struct MemberSummary: Codable, Equatable, Sendable {
    /// 16 hex digits.
    public var member: String
    /// 64 hex digits.
    public var key: String
    /// Nil for a member that was never seen.
    public var name: String?
    /// `owner`, `presenter`, `attendee`, `consumer` or `none`.
    public var role: String
    /// Seconds since 1970; nil for never.
    public var expiresAt: UInt64?
    /// Whether codes were compared.
    public var verified: Bool
    /// Whether it can be reached now; always false while no node runs.
    public var here: Bool
    /// Seconds since 1970; nil for a member that was never seen.
    public var lastSeen: UInt64?
  }

  /// Does what is asked; `data` is the data directory, nil for the default one.
  ///
  /// Throws what the request runs into, and an error when a node uses the directory and does not
  /// answer, or when none runs and only a node could answer.
  public static func perform(
    _ request: Request, data: String?
  ) async throws(MusterError) -> Reply {
    guard let path = data ?? DataDirectory.defaultPath else {
      throw MusterError(
        "neither XDG_DATA_HOME nor HOME is set", hint: "use --data DIR", kind: .usage)
    }
    for _ in 0..<attempts {
      if let directory = try DataDirectory.open(path) {
        guard !request.verb.needsNode else {
          throw MusterError(
            "no node runs on the data directory \(path)",
            hint: "start one with muster join, or name its directory with --data")
        }
        return try OfflineAdministration(directory).perform(request)
      }
      if let reply = try await ControlSocket.ask(.administer(request), in: path) {
        guard let failure = reply.failure else { return reply }
        throw MusterError(
          failure.message, hint: failure.hint, kind: failure.isUsage ? .usage : .failure)
      }
      // Another command, done in a moment, or a node that is about to listen or to end.
      do { try await Task.sleep(for: pause) } catch {
        throw MusterError("the command was cancelled", hint: "nothing was changed")
      }
    }
    throw ControlSocket.noAnswer(in: path)
  }

  /// Three seconds together: a command takes some milliseconds, an end a second at most.
  private static let attempts = 150
  private static let pause = Duration.milliseconds(20)
}
