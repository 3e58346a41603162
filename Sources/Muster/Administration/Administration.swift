import MusterBase
import MusterChannel
import MusterStore
import MusterWire

/// The requests behind `muster channel`, `invite`, `verify`, `ping` and `doctor --node`, served
/// from the data directory or by the node that is using it.
public enum Administration {
  /// A query or a change, the payload of `Command.administer`.
  public struct Request: Equatable, Sendable {
    /// The request's name in JSON, the value of the field `do`.
    public enum Verb: String, Codable, Sendable, CaseIterable {
      case create, list, show, grant, revoke, invite, verify, rename, forget
      /// Measures the round-trip times to a member; needs a running node.
      case ping
      /// Reports counters, links and queues; needs a running node.
      case diagnose

      /// Whether only a running node can answer.
      public var needsNode: Bool { self == .ping || self == .diagnose }
    }

    /// The action requested, which determines the fields that are used.
    public var verb: Verb
    /// The channel's name or id (16 or 64 hex digits); nil for requests that concern all channels.
    public var channel: String?
    /// The channel's new name on this machine, for `rename`.
    public var name: String?
    /// The member by id (16 hex digits), full key (64 hex digits) or name; for `revoke` also an
    /// invite by its id.
    public var member: String?
    /// The role to grant; nil for the default, attendee.
    public var role: Role?
    /// The expiry time in seconds since 1970; nil for no expiry.
    public var expiresAt: UInt64?
    /// The time at which the roles of those who come by an invite end, in seconds since 1970; nil
    /// for never.
    public var roleExpiresAt: UInt64?
    /// The number of people who may come by an invite, 0 for any number; nil for one.
    public var uses: UInt32?
    /// The peers to list in an invite, each as `HOST:PORT`.
    public var peers: [String] = []
    /// The rendezvous servers to list in an invite, each as `HOST:PORT`.
    public var rendezvous: [String] = []
    /// The rules for calls in a channel to be created.
    public var settings = ChannelSettings()
    /// Whether `revoke` only says what it would remove.
    public var isDryRun = false
    /// Whether `revoke` changes a key that comes from a backup and may not be the newest.
    public var isForced = false
    /// Whether the user confirms, for `verify`, that the codes are equal.
    public var confirm = false

    /// A request with the defaults in all other fields.
    public init(_ verb: Verb) { self.verb = verb }
  }

  /// The reply to a request, printed by `--json` and sent over the control socket.
  public struct Reply: Equatable, Sendable {
    /// The URL of the new invite, for `invite`.
    public var invite: String?
    /// The verification code that the two members compare, for `verify`.
    public var code: String?
    /// The members and the invite that are removed, for `revoke`.
    public var removal: RemovalSummary?
    /// The requested channels, or the channel that was created, renamed or forgotten.
    public var channels: [ChannelSummary] = []
    /// The round-trip times, for `ping`.
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

    /// An empty reply.
    public init() {}
  }

  /// A channel as recorded in the store.
  public struct ChannelSummary: Codable, Equatable, Sendable {
    /// The kind of a channel: a `created` channel has an owner and roles, an `open` channel admits
    /// any holder of its key.
    public enum Kind: String, Codable, Sendable { case created, open }

    /// The channel's local name.
    public var name: String
    /// The channel's id, 64 hex digits.
    public var id: String
    /// `created` for a channel with an owner and roles, otherwise `open`.
    public var kind: Kind
    /// The owner's full key; nil for open channels.
    public var owner: String?
    /// Whether the owner is this node's identity.
    public var isOwner: Bool
    /// The current key epoch; each removal starts the next, and so does the expiry of
    /// roles.
    public var epoch: UInt32
    /// The time of creation in seconds since 1970.
    public var createdAt: UInt64
    /// Whether a call ends, instead of being handed over, when its initiator becomes unreachable.
    public var callEndsWithInitiator: Bool
    /// Whether attendees may only receive, like consumers.
    public var onlyPresentersSend: Bool
    /// All members with a role and all members seen before, unordered.
    public var members: [MemberSummary] = []
    /// The invites that owners have made, sorted by id; empty for open channels.
    public var invites: [InviteSummary] = []

    /// Whether the channel has an owner and roles.
    public var isCreated: Bool { kind == .created }
  }

  /// What `revoke` removes.
  public struct RemovalSummary: Codable, Equatable, Sendable {
    /// The ids of the members that go.
    public var members: [String]
    /// The id of the invite that is revoked, or by which the removed member came; nil for a member
    /// that came by none.
    public var invite: String?
    /// The ids of the members that came by the same invite and stay.
    public var staying: [String]
  }

  /// An invite as recorded in the store.
  public struct InviteSummary: Codable, Equatable, Sendable {
    /// The invite's id, 16 hex digits.
    public var invite: String
    /// The role of those who come by it: `presenter`, `attendee` or `consumer`; `none` if it was
    /// revoked.
    public var role: String
    /// The number of people who may come by it; nil for any number.
    public var uses: UInt32?
    /// The expiry time in seconds since 1970; nil for no expiry.
    public var expiresAt: UInt64?
    /// Whether more people may come by it now.
    public var usable: Bool
    /// The ids of those who came by it and whom its owner has confirmed.
    public var confirmed: [String]
    /// The ids of those who came by it and are members until its owner confirms them.
    public var provisional: [String]
  }

  /// A member of a channel as recorded in the store.
  public struct MemberSummary: Codable, Equatable, Sendable {
    /// The member's id, 16 hex digits.
    public var member: String
    /// The member's full key, 64 hex digits.
    public var key: String
    /// The member's last known name; nil for a member that was never seen.
    public var name: String?
    /// `owner`, `presenter`, `attendee`, `consumer` or `none`.
    public var role: String
    /// The expiry time in seconds since 1970; nil for no expiry.
    public var expiresAt: UInt64?
    /// The id of the invite by which the member came, 16 hex digits; nil if it came by none.
    public var invite: String?
    /// Whether the user has confirmed that the verification codes are equal.
    public var verified: Bool
    /// Whether the member is reachable now; always false while no node runs.
    public var online: Bool
    /// The time at which the member was last seen to join, in seconds since 1970; nil for a member
    /// that was never seen.
    public var lastSeen: UInt64?
  }

  /// Carries out a request; `data` is the data directory, nil for the default one.
  ///
  /// Throws if the request fails, if a node holds the directory's lock but does not answer, or if
  /// the request needs a node and no node runs.
  public static func perform(
    _ request: Request, data: String?
  ) async throws(MusterError) -> Reply {
    let path = try path(of: data)
    let reply = try await retrying { () async throws(MusterError) -> Reply? in
      guard let directory = try DataDirectory.open(path) else {
        return try await ControlSocket.ask(.administer(request), in: path)
      }
      guard !request.verb.needsNode else {
        throw MusterError(
          "no node runs on the data directory \(path)",
          hint: "start one with muster join, or name its directory with --data")
      }
      return try await OfflineAdministration(directory).perform(request)
    }
    guard let reply else { throw ControlSocket.noAnswer(in: path) }
    guard let failure = reply.failure else { return reply }
    throw MusterError(
      failure.message, hint: failure.hint, kind: failure.isUsage ? .usage : .failure)
  }

  /// The path of the data directory `data`, or of the default one if it is nil. Throws if that is
  /// unknown.
  static func path(of data: String?) throws(MusterError) -> String {
    guard let path = data ?? DataDirectory.defaultPath else {
      throw MusterError(
        "neither XDG_DATA_HOME nor HOME is set", hint: "use --data DIR", kind: .usage)
    }
    return path
  }

  /// The first result of `attempt` that is not nil. A data directory may be locked by another short
  /// command, or by a node that is starting or stopping: nil if it is for 3 s.
  static func retrying<Result>(
    _ attempt: () async throws(MusterError) -> Result?
  ) async throws(MusterError) -> Result? {
    for _ in 0..<attempts {
      if let result = try await attempt() { return result }
      do { try await Task.sleep(for: pause) } catch {
        throw MusterError("the command was cancelled", hint: "nothing was changed")
      }
    }
    return nil
  }

  /// The maximum number of attempts, 3 s in total: another command holds the lock for a few
  /// milliseconds, a node that is stopping for at most a second.
  private static let attempts = 150
  private static let pause = Duration.milliseconds(20)
}
