import FoundationEssentials
import MusterBase
import MusterWire

/// The JSON form of commands, such as `{"do":"mute","media":"audio"}`; unknown fields are ignored.
extension Command: Codable {
  /// The maximum size of a command in bytes.
  public static let jsonLimit = 4096

  /// Parses one JSON object; the error names the accepted values.
  public init(json: [UInt8], limit: Int = Command.jsonLimit) throws(MusterError) {
    guard json.count <= limit else {
      throw MusterError(
        "the command is too long", hint: "\(limit) bytes are the most", kind: .usage)
    }
    do {
      self = try JSONDecoder().decode(Command.self, from: Data(json))
    } catch let error as MusterError {
      throw error
    } catch DecodingError.typeMismatch(_, let context) where !context.codingPath.isEmpty {
      throw Self.wrongType(context.codingPath)
    } catch DecodingError.dataCorrupted(let context) where !context.codingPath.isEmpty {
      throw Self.wrongType(context.codingPath)
    } catch {
      throw Self.notACommand("this")
    }
  }

  /// The name of the command; nil for `administer`, whose requests have names of their own.
  public var verb: Verb? { Fields(self).verb }

  /// The command as one line of JSON.
  public var json: String { JSONValue(encoding: self, nulls: .omitted).text }

  /// Throws a `MusterError` if the object is not a command.
  public init(from decoder: any Decoder) throws {
    let name = try decoder.container(keyedBy: Fields.CodingKeys.self)
      .decodeIfPresent(String.self, forKey: .verb)
    guard let name else { throw Self.notACommand("this") }
    if let verb = Administration.Request.Verb(rawValue: name) {
      self = .administer(try Administration.Request(verb, from: decoder))
    } else if let verb = Verb(rawValue: name) {
      self = try Fields(from: decoder).command(verb)
    } else {
      throw Self.notACommand("\"\(DisplayText.sanitized(name, limit: 40))\"")
    }
  }

  /// Encodes the fields in the documented order.
  public func encode(to encoder: any Encoder) throws {
    if case .administer(let request) = self { return try request.encode(to: encoder) }
    try Fields(self).encode(to: encoder)
  }

  private static func notACommand(_ what: String) -> MusterError {
    let verbs = Verb.allCases.map { "\"\($0.rawValue)\"" }.joined(separator: ", ")
    return MusterError(
      "\(what) is not a command", hint: "write one JSON object a line: {\"do\": one of \(verbs)}",
      kind: .usage)
  }

  private static func wrongType(_ path: [any CodingKey]) -> MusterError {
    guard path.last?.stringValue != "do" else { return notACommand("this") }
    let field = DisplayText.sanitized(path.last?.stringValue ?? "", limit: 40)
    return MusterError(
      "\"\(field)\" has a value of the wrong kind", hint: "see docs/EVENTS.md", kind: .usage)
  }
}

/// The JSON fields of all commands, in the order of output.
private struct Fields: Codable {
  var verb: Command.Verb?
  var media: String?
  var member: String?
  var stream: String?
  var width: Int?
  var height: Int?
  var fps: Int?
  var pin: Bool?
  var off: Bool?
  var channel: String?
  var text: String?
  var to: String?
  var passphrase: String?
  var invite: String?
  var call: Bool?
  var handOver: Bool?

  enum CodingKeys: String, CodingKey {
    case verb = "do"
    case media, member, stream, width, height, fps, pin, off, channel, text, to, passphrase, invite
    case call, handOver
  }

  // MARK: Decoding

  func command(_ verb: Command.Verb) throws(MusterError) -> Command {
    switch verb {
    case .startCall: return .startCall(channel: channel)
    case .joinCall: return .joinCall(channel: channel)
    case .leaveCall: return .leaveCall(handOver: handOver ?? false, channel: channel)
    case .mute: return .mute(try medium(verb), channel: channel)
    case .unmute: return .unmute(try medium(verb), channel: channel)
    case .muteMember:
      return .muteMember(try medium(verb), of: try required(member), channel: channel)
    case .removeFromCall: return .removeFromCall(try required(member), channel: channel)
    case .watch:
      return .watch(
        .init(
          try size(), framesPerSecond: try rate(), isPinned: try isPinned(), stream: stream,
          of: member, channel: channel))
    case .keyframe:
      return .keyframe(member: try required(member), stream: stream, channel: channel)
    case .say:
      guard let text else { throw Self.usage("say what", "add \"text\"") }
      return .say(text, to: to, channel: channel)
    case .joinChannel:
      return .joinChannel(
        .init(channel: channel, passphrase: passphrase, invite: invite, call: call ?? false))
    case .leaveChannel: return .leaveChannel(channel: channel)
    case .quit: return .quit
    }
  }

  private func required(_ member: String?) throws(MusterError) -> String {
    guard let member else {
      throw Self.usage("which member", "add \"member\" with an id from member.joined")
    }
    return member
  }

  private func medium(_ verb: Command.Verb) throws(MusterError) -> Command.Media {
    let allowed = Command.Media.allCases.map { "\"\($0.rawValue)\"" }.joined(separator: " or ")
    guard let media else {
      throw Self.usage("\(verb.rawValue) of what", "add \"media\": \(allowed)")
    }
    guard let medium = Command.Media(rawValue: media) else {
      let shown = DisplayText.sanitized(media, limit: 40)
      throw Self.usage("\"\(shown)\" is not a medium", "\"media\" is \(allowed)")
    }
    return medium
  }

  private func size() throws(MusterError) -> VideoSize? {
    if off == true { return nil }
    guard let width, let height, width > 0, height > 0 else {
      throw Self.usage("watch at which size", "add \"width\" and \"height\", or \"off\": true")
    }
    return VideoSize(width: width, height: height)
  }

  private func isPinned() throws(MusterError) -> Bool {
    guard pin == true else { return false }
    guard member != nil else {
      throw Self.usage("pin which member", "add \"member\" with an id from member.joined")
    }
    guard off != true else {
      throw Self.usage("what is off cannot be pinned", "leave out \"pin\" or \"off\"")
    }
    return true
  }

  private func rate() throws(MusterError) -> Int? {
    let rates = VideoRequest.rates
    guard let fps, !rates.contains(fps) else { return fps }
    throw Self.usage(
      "\(fps) is no frame rate", "\"fps\" is \(rates.lowerBound) to \(rates.upperBound)")
  }

  private static func usage(_ message: String, _ hint: String) -> MusterError {
    MusterError(message, hint: hint, kind: .usage)
  }

  // MARK: Encoding

  init(_ command: Command) {
    channel = command.channel
    switch command {
    case .startCall: verb = .startCall
    case .joinCall: verb = .joinCall
    case .leaveCall(let handOver, _):
      verb = .leaveCall
      if handOver { self.handOver = true }
    case .mute(let media, _): (verb, self.media) = (.mute, media.rawValue)
    case .unmute(let media, _): (verb, self.media) = (.unmute, media.rawValue)
    case .muteMember(let media, let member, _):
      (verb, self.media, self.member) = (.muteMember, media.rawValue, member)
    case .removeFromCall(let member, _): (verb, self.member) = (.removeFromCall, member)
    case .watch(let watch):
      (verb, member, stream) = (.watch, watch.member, watch.stream)
      (width, height, fps) = (watch.size?.width, watch.size?.height, watch.framesPerSecond)
      if watch.isPinned { pin = true }
      if watch.size == nil { off = true }
    case .keyframe(let member, let stream, _):
      (verb, self.member, self.stream) = (.keyframe, member, stream)
    case .say(let text, let to, _): (verb, self.text, self.to) = (.say, text, to)
    case .joinChannel(let join):
      (verb, passphrase, invite) = (.joinChannel, join.passphrase, join.invite)
      if join.call { call = true }
    case .leaveChannel: verb = .leaveChannel
    case .quit: verb = .quit
    case .administer: break  // encodes itself
    }
  }
}
