import ArgumentParser
import Muster
import MusterBase
import MusterSystem

/// The command `muster verify`, which authenticates a member by a code that two people compare by
/// voice.
struct VerifyCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "verify",
    abstract: "Compare a short code with a member, by voice, to know that it is the one you mean.",
    discussion: """
      Both of you run this, naming the other, and read the digits to each other. The same digits \
      on both sides mean that nobody is in between and that the key is the other's own. It is \
      remembered for as long as the key stays the same.
      """)

  @Argument(help: "A channel that both of you are in.")
  var channel: String

  @Argument(help: "The other: an id, a full key, or a name.")
  var member: String

  @Flag(help: "The codes are the same: remember it, without asking.")
  var confirm = false

  @OptionGroup var options: DataOptions

  func run() async throws {
    var request = Administration.Request(.verify)
    request.channel = channel
    request.member = member
    request.confirm = confirm
    let reply = try await options.perform(request)
    if options.json { return print(reply.json.text) }
    guard let code = reply.code else {
      throw MusterError("no code came of it", hint: "update muster and the running node")
    }
    print(code)
    if confirm { return print("Remembered: \(Words.shown(member)) is verified.") }
    guard isatty(STDIN_FILENO) == 1, isatty(STDOUT_FILENO) == 1 else { return }
    guard asksWhetherTheSame() else {
      return print(
        "Not remembered. Different digits mean that the key is not the other's, or that one of you "
          + "named somebody else.")
    }
    request.confirm = true
    _ = try await options.perform(request)
    print("Remembered: \(Words.shown(member)) is verified.")
  }

  private func asksWhetherTheSame() -> Bool {
    print("Does \(Words.shown(member)) read out the same? [y/N] ", terminator: "")
    fflush(nil)
    let answer = readLine(strippingNewline: true) ?? ""
    return ["y", "yes"].contains(answer.lowercased())
  }
}
