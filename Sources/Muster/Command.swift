import FoundationEssentials
import MusterBase

/// What a host asks of a running node: one JSON object a line on standard input, or from the page.
public struct Command: Decodable, Equatable, Sendable {
  public enum Verb: String, Decodable, Sendable, CaseIterable {
    case startCall = "start-call"
    case joinCall = "join-call"
    case leaveCall = "leave-call"
    case mute, unmute, watch, say, quit
    case joinChannel = "join-channel"
    case leaveChannel = "leave-channel"
    /// The page's decoder lost its state: ask the member for a keyframe.
    case keyframe
  }

  public enum Media: String, Decodable, Sendable { case audio, video }

  public var verb: Verb
  public var media: Media?
  /// A member's id, as events give it.
  public var member: String?
  /// The name of a video stream, as events give it; every stream of the member without.
  public var stream: String?
  public var width: Int?
  public var height: Int?
  public var off: Bool?
  public var channel: String?
  /// What to say, and to whom: a member's id; to everyone without.
  public var text: String?
  public var to: String?
  /// For join-channel: the secret of an open channel, or the invite to a created one.
  public var passphrase: String?
  public var invite: String?
  /// For join-channel: whether to join or start the call at once.
  public var call: Bool?

  enum CodingKeys: String, CodingKey {
    case verb = "do"
    case media, member, stream, width, height, off, channel, text, to, passphrase, invite, call
  }

  public init(_ verb: Verb, media: Media? = nil) {
    self.verb = verb
    self.media = media
  }

  /// Reads one JSON object; throws an error that says what would have been understood.
  public init(json: [UInt8]) throws(MusterError) {
    guard json.count <= 4096 else {
      throw MusterError("the command is too long", hint: "4096 bytes are the most", kind: .usage)
    }
    do {
      self = try JSONDecoder().decode(Command.self, from: Data(json))
    } catch {
      let verbs = Verb.allCases.map { "\"\($0.rawValue)\"" }.joined(separator: ", ")
      throw MusterError(
        "this is not a command", hint: "write one JSON object a line: {\"do\": one of \(verbs)}",
        kind: .usage)
    }
  }
}
