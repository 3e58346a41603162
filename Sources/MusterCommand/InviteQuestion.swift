import Muster
import MusterBase
import MusterSystem

/// Asks whether to join the channel of an invite that came as a link: a link takes one click, and
/// anyone can have made it.
package enum InviteQuestion {
  /// Whether the user wants to join. Throws if the invite is damaged, or without a terminal.
  static func isAnsweredYes(
    _ invite: Invite, _ configuration: Configuration, usesTerminal: Bool
  ) async throws(MusterError) -> Bool {
    let details = try InviteDetails(invite)
    guard usesTerminal else {
      throw MusterError(
        "there is no terminal to ask at", hint: "leave --ask away to join without a question",
        kind: .usage)
    }
    var request = Administration.Request(.show)
    request.channel = details.id.hash.hex
    // Without a data directory that can be read nothing is remembered; joining says why.
    let reply = try? await Administration.perform(request, data: configuration.dataDirectory)
    let remembered = reply?.channels.first
    let maker = remembered?.members.first { $0.key == details.maker?.key.hex }
    let known = remembered.map {
      Remembered(channel: $0.name, maker: maker?.name, isVerified: maker?.verified ?? false)
    }
    for line in lines(details, known, configuration) { standardError(line) }
    let prompt = Array("Join? [y/N] ".utf8)
    _ = write(STDERR_FILENO, prompt, prompt.count)
    let answer = readLine()?.lowercased() ?? ""
    return answer == "y" || answer == "yes"
  }

  /// A remembered channel to which an invite leads.
  package struct Remembered {
    /// The channel's name on this machine.
    let channel: String
    /// The name by which the invite's maker was last seen in the channel; nil if it never was.
    let maker: String?
    /// Whether the maker's key was compared.
    let isVerified: Bool

    package init(channel: String, maker: String?, isVerified: Bool) {
      (self.channel, self.maker, self.isVerified) = (channel, maker, isVerified)
    }
  }

  /// What the user should know before the answer.
  package static func lines(
    _ details: InviteDetails, _ remembered: Remembered?, _ configuration: Configuration
  ) -> [String] {
    let known = remembered.map {
      $0.channel == details.channel
        ? "which you know" : "which you know as \(Words.shown($0.channel))"
    }
    let channel = "\(Words.shown(details.channel)), \(details.kind) channel \(details.id)"
    let rows = [
      ("Invite to", "\(channel), \(known ?? "new here")"),
      ("made by", maker(details, remembered)),
      ("your role", details.role.name),
      ("live", details.maySend ? live(configuration) : "nothing: the role permits no sending"),
    ]
    return rows.map { Style.padded($0.0, to: 11) + $0.1 }
  }

  private static func maker(_ details: InviteDetails, _ remembered: Remembered?) -> String {
    guard let maker = details.maker else { return "nobody says: the channel's key is enough" }
    let creator = maker == details.creator ? ", who created the channel" : ""
    guard let name = remembered?.maker else {
      return "\(maker)\(creator), whom you have not met there"
    }
    let verified = remembered?.isVerified == true ? ", verified" : ""
    return "\(Words.shown(name)), \(maker)\(creator)\(verified)"
  }

  /// The devices that others would see and hear, and when.
  private static func live(_ configuration: Configuration) -> String {
    let sources = [
      configuration.videoMuted ? nil : configuration.video,
      configuration.audioMuted ? nil : configuration.audio, configuration.share,
    ].compactMap { $0 }
    guard !sources.isEmpty else { return "nothing: no camera or microphone is on" }
    let named = sources.map { $0 == "mic" ? "microphone" : Words.shown($0) }
      .joined(separator: ", ")
    if configuration.call { return "\(named), at once: your settings start or join its call" }
    if configuration.answersCalls { return "\(named), as soon as somebody starts a call" }
    return "nothing until you join its call; then \(named)"
  }
}
