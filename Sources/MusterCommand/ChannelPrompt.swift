import Muster
import MusterSystem

/// Asks at the terminal what to join, when the command line names nothing: a program menu starts
/// the command like that.
enum ChannelPrompt {
  /// What the user chose to join.
  enum Answer {
    case invite(String)
    /// A channel by its name, and the passphrase that the user typed, if any.
    case channel(String, passphrase: String?)
  }

  /// Asks for a channel or an invite, and for the passphrase of a channel that is not remembered in
  /// the data directory. With `hasSecret` the passphrase is known and not asked for.
  static func ask(data: String?, hasSecret: Bool) async throws(MusterError) -> Answer {
    // Without a data directory that can be read nothing is remembered; joining says why.
    let remembered = try? await Administration.perform(Administration.Request(.list), data: data)
    let names = remembered?.channels.map(\.name) ?? []
    if !names.isEmpty {
      standardError("Remembered channels: \(names.map(Words.shown).joined(separator: ", "))")
    }
    let prompt = Array("Channel or invite: ".utf8)
    _ = write(STDERR_FILENO, prompt, prompt.count)
    let line = readLine() ?? ""
    let words = line.split(whereSeparator: \.isWhitespace)
    guard !words.isEmpty else {
      throw MusterError("no channel is given", hint: "nothing was joined", kind: .usage)
    }
    if line.contains("://") { return .invite(String(words[0])) }
    let name = words.joined(separator: " ")
    guard !hasSecret, !names.contains(name) else { return .channel(name, passphrase: nil) }
    let passphrase = try PassphrasePrompt.ask(
      "Passphrase of \(Words.shown(name)) (empty: anyone may join it): ")
    return .channel(name, passphrase: passphrase?.isEmpty == true ? nil : passphrase)
  }
}
