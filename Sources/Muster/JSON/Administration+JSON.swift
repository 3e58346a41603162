import FoundationEssentials
import MusterBase
import MusterChannel
import MusterWire

extension Administration.Request {
  private enum CodingKeys: String, CodingKey {
    case verb = "do"
    case channel, name, member, role, expiresAt, roleExpiresAt, uses, peers, rendezvous
    case callEndsWithInitiator, onlyPresentersSend, confirm
    case isDryRun = "dryRun"
    case isForced = "force"
  }

  /// Decodes the fields of a request; throws a `MusterError` for an unknown role.
  init(_ verb: Verb, from decoder: any Decoder) throws {
    self.init(verb)
    let fields = try decoder.container(keyedBy: CodingKeys.self)
    channel = try fields.decodeIfPresent(String.self, forKey: .channel)
    name = try fields.decodeIfPresent(String.self, forKey: .name)
    member = try fields.decodeIfPresent(String.self, forKey: .member)
    if let name = try fields.decodeIfPresent(String.self, forKey: .role) {
      guard let role = Role(name: name), role != .none else {
        throw MusterError(
          "there is no role \(DisplayText.sanitized(name, limit: 40))",
          hint: "one of owner, presenter, attendee, consumer", kind: .usage)
      }
      self.role = role
    }
    expiresAt = try fields.decodeIfPresent(UInt64.self, forKey: .expiresAt)
    roleExpiresAt = try fields.decodeIfPresent(UInt64.self, forKey: .roleExpiresAt)
    uses = try fields.decodeIfPresent(UInt32.self, forKey: .uses)
    peers = try fields.decodeIfPresent([String].self, forKey: .peers) ?? []
    rendezvous = try fields.decodeIfPresent([String].self, forKey: .rendezvous) ?? []
    settings = ChannelSettings(
      callEndsWithInitiator:
        try fields.decodeIfPresent(Bool.self, forKey: .callEndsWithInitiator) ?? false,
      onlyPresentersSend:
        try fields.decodeIfPresent(Bool.self, forKey: .onlyPresentersSend) ?? false)
    confirm = try fields.decodeIfPresent(Bool.self, forKey: .confirm) ?? false
    isDryRun = try fields.decodeIfPresent(Bool.self, forKey: .isDryRun) ?? false
    isForced = try fields.decodeIfPresent(Bool.self, forKey: .isForced) ?? false
  }

  func encode(to encoder: any Encoder) throws {
    var fields = encoder.container(keyedBy: CodingKeys.self)
    try fields.encode(verb, forKey: .verb)
    try fields.encodeIfPresent(channel, forKey: .channel)
    try fields.encodeIfPresent(name, forKey: .name)
    try fields.encodeIfPresent(member, forKey: .member)
    try fields.encodeIfPresent(role?.name, forKey: .role)
    try fields.encodeIfPresent(expiresAt, forKey: .expiresAt)
    try fields.encodeIfPresent(roleExpiresAt, forKey: .roleExpiresAt)
    try fields.encodeIfPresent(uses, forKey: .uses)
    if !peers.isEmpty { try fields.encode(peers, forKey: .peers) }
    if !rendezvous.isEmpty { try fields.encode(rendezvous, forKey: .rendezvous) }
    if settings.callEndsWithInitiator { try fields.encode(true, forKey: .callEndsWithInitiator) }
    if settings.onlyPresentersSend { try fields.encode(true, forKey: .onlyPresentersSend) }
    if confirm { try fields.encode(true, forKey: .confirm) }
    if isDryRun { try fields.encode(true, forKey: .isDryRun) }
    if isForced { try fields.encode(true, forKey: .isForced) }
  }
}

extension Administration.Reply: Codable {
  private enum CodingKeys: String, CodingKey {
    case invite, code, removal, channels, ping, node, failure
  }

  /// The JSON object that `--json` prints.
  public var json: JSONValue { JSONValue(encoding: self) }

  /// Decodes one line from the control socket.
  package init(json: [UInt8]) throws {
    self = try JSONDecoder().decode(Self.self, from: Data(json))
  }

  /// Decodes the fields; unknown fields are ignored.
  public init(from decoder: any Decoder) throws {
    self.init()
    let fields = try decoder.container(keyedBy: CodingKeys.self)
    invite = try fields.decodeIfPresent(String.self, forKey: .invite)
    code = try fields.decodeIfPresent(String.self, forKey: .code)
    removal = try fields.decodeIfPresent(Administration.RemovalSummary.self, forKey: .removal)
    channels = try fields.decode([Administration.ChannelSummary].self, forKey: .channels)
    ping = try fields.decodeIfPresent(PingReply.self, forKey: .ping)
    node = try fields.decodeIfPresent(NodeReport.self, forKey: .node)
    failure = try fields.decodeIfPresent(Failure.self, forKey: .failure)
  }

  /// Encodes `channels`, even if it is empty, and the other fields that are not nil.
  public func encode(to encoder: any Encoder) throws {
    var fields = encoder.container(keyedBy: CodingKeys.self)
    if let invite { try fields.encode(invite, forKey: .invite) }
    if let code { try fields.encode(code, forKey: .code) }
    if let removal { try fields.encode(removal, forKey: .removal) }
    try fields.encode(channels, forKey: .channels)
    if let ping { try fields.encode(ping, forKey: .ping) }
    if let node { try fields.encode(node, forKey: .node) }
    if let failure { try fields.encode(failure, forKey: .failure) }
  }
}
