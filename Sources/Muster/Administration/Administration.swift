import FoundationEssentials
import MusterBase
import MusterCore
import MusterStore
import MusterWire

/// What `muster channel`, `invite` and `verify` do: with the data directory itself, or through the
/// node that is using it.
public enum Administration {
  public struct Request: Codable, Sendable {
    public enum Verb: String, Codable, Sendable {
      case create, list, show, grant, revoke, invite, verify
    }

    public var verb: Verb
    public var channel: String?
    /// An id, a full key, or a name.
    public var member: String?
    public var roleName: String?
    /// Seconds since 1970; 0 for never.
    public var expiresAt: UInt64?
    public var peers: [String] = []
    public var rendezvous: [String] = []
    public var callEndsWithInitiator = false
    public var onlyPresentersSend = false
    /// For verify: the codes were found to be the same.
    public var confirm = false

    public init(_ verb: Verb) { self.verb = verb }

    public var role: Role? {
      get { roleName.flatMap { Role(name: $0) } }
      set { roleName = newValue?.name }
    }

    public var settings: ChannelSettings {
      get {
        ChannelSettings(
          callEndsWithInitiator: callEndsWithInitiator, onlyPresentersSend: onlyPresentersSend)
      }
      set {
        callEndsWithInitiator = newValue.callEndsWithInitiator
        onlyPresentersSend = newValue.onlyPresentersSend
      }
    }
  }

  public struct Reply: Codable, Sendable {
    public var channels: [ChannelSummary] = []
    public var invite: String?
    public var code: String?
    public var warning: String?
    /// What went wrong, and what to do, and whether the request made no sense.
    var failure: Failure?

    struct Failure: Codable, Sendable {
      var message: String
      var hint: String
      var isUsage: Bool
    }

    public init() {}
  }

  public struct ChannelSummary: Codable, Sendable {
    public var name: String
    public var id: String
    public var isCreated: Bool
    /// The owner's full key; nil for open channels.
    public var owner: String?
    public var isOwner: Bool
    public var epoch: UInt32
    public var createdAt: UInt64
    public var callEndsWithInitiator: Bool
    public var onlyPresentersSend: Bool
    public var members: [MemberSummary] = []
  }

  public struct MemberSummary: Codable, Sendable {
    public var id: String
    public var key: String
    /// Nil for a member that was never seen.
    public var name: String?
    public var role: String
    /// Seconds since 1970; 0 for never.
    public var expiresAt: UInt64
    public var isVerified: Bool
    public var isHere: Bool
    /// Seconds since 1970; nil for a member that was never seen.
    public var lastSeen: UInt64?
  }

  /// Does what is asked; `data` is the data directory, nil for the default one.
  public static func perform(
    _ request: Request, data: String?
  ) async throws(MusterError) -> Reply {
    guard let path = data ?? DataDirectory.defaultPath else {
      throw MusterError(
        "neither XDG_DATA_HOME nor HOME is set", hint: "use --data DIR", kind: .usage)
    }
    for _ in 0..<attempts {
      if let directory = try DataDirectory.open(path) {
        return try OfflineAdministration(directory).perform(request)
      }
      if let reply = try await ControlSocket.ask(request, in: path) {
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

extension Administration.Reply {
  /// As `--json` prints it.
  public var json: JSONValue {
    var fields: [(String, JSONValue)] = []
    if let invite { fields.append(("invite", .string(invite))) }
    if let code { fields.append(("code", .string(code))) }
    fields.append(("channels", .array(channels.map(\.json))))
    return .object(fields)
  }
}

extension Administration.ChannelSummary {
  var json: JSONValue {
    .object([
      ("name", .string(name)), ("id", .string(id)),
      ("kind", .string(isCreated ? "created" : "open")),
      ("owner", owner.map { .string($0) } ?? .null), ("isOwner", .bool(isOwner)),
      ("epoch", .integer(Int64(epoch))), ("createdAt", .integer(Int64(clamping: createdAt))),
      ("callEndsWithInitiator", .bool(callEndsWithInitiator)),
      ("onlyPresentersSend", .bool(onlyPresentersSend)),
      ("members", .array(members.map(\.json))),
    ])
  }
}

extension Administration.MemberSummary {
  var json: JSONValue {
    .object([
      ("member", .string(id)), ("key", .string(key)), ("name", name.map { .string($0) } ?? .null),
      ("role", .string(role)),
      ("expiresAt", expiresAt == 0 ? .null : .integer(Int64(clamping: expiresAt))),
      ("verified", .bool(isVerified)), ("here", .bool(isHere)),
      ("lastSeen", lastSeen.map { .integer(Int64(clamping: $0)) } ?? .null),
    ])
  }
}
