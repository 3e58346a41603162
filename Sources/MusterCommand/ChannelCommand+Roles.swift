import ArgumentParser
import Muster
import MusterBase
import MusterWire

/// The command `muster channel grant`, which changes the role of a member.
struct ChannelGrantCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "grant", abstract: "Give a member another role, at once and for everyone.",
    discussion: "For owners. Any other role of the member ends, also one that came by an invite.")

  @Argument(help: "The channel.")
  var name: String

  @Argument(help: "The member: an id, a full key, or a name.")
  var member: String

  @Argument(help: "owner, presenter, attendee or consumer.")
  var role: String

  @Option(
    help: ArgumentHelp(
      "When it ends: 30m, 2h, 7d, 2026-12-31, 2026-12-31T18:00Z or never.", valueName: "time"))
  var expires = "never"

  @OptionGroup var options: DataOptions

  func run() async throws {
    var request = Administration.Request(.grant)
    request.channel = name
    request.member = member
    request.role = try Words.role(role)
    request.expiresAt = try Expiry.parse(expires, now: Clocks.wallSeconds)
    let reply = try await options.perform(request)
    if options.json { return print(reply.json.text) }
    let end = expires == "never" ? "" : " until \(Expiry.text(request.expiresAt ?? Expiry.never))"
    print("\(Words.shown(member)) is \(role) in \(Words.shown(name))\(end).")
  }
}

/// The command `muster channel revoke`, which removes members and changes the channel's key.
struct ChannelRevokeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "revoke",
    abstract: "Remove a member, or an invite with all who came by it.",
    discussion: """
      For owners. Whoever is removed by the channel's creator loses its role and the channel's \
      key; everyone else gets a new key, also those who are away, as soon as they meet somebody \
      who has it, and invites from before do not work any more. Other owners only take the role \
      away. In a channel without an owner nobody can be removed. See muster channel show for who \
      came by which invite.
      """)

  @Argument(help: "The channel.")
  var name: String

  @Argument(help: "The member by its id, full key or name, or the invite by its id.")
  var member: String

  @Flag(help: "Only say what would be removed.")
  var dryRun = false

  @Flag(
    help: """
      Also if this node was restored from a backup and has met no member since. Members that have \
      a newer key than the backup do not find it any more then.
      """)
  var force = false

  @OptionGroup var options: DataOptions

  func run() async throws {
    var request = Administration.Request(.revoke)
    request.channel = name
    request.member = member
    request.isDryRun = true
    let preview = try await options.perform(request)
    if !options.json { for line in Self.lines(preview, in: name) { print(line) } }
    if dryRun {
      if options.json { print(preview.json.text) }
      return
    }
    request.isDryRun = false
    request.isForced = force
    let reply = try await options.perform(request)
    if options.json { return print(reply.json.text) }
    guard preview.channels.first?.isOwner == true else {
      print("\(Words.shown(member)) has no role in \(Words.shown(name)) any more.")
      return print(Style.dim("Only the channel's creator can change its key as well."))
    }
    print("\(Words.shown(member)) is removed from \(Words.shown(name)), which has a new key.")
    print(Style.dim("Invites from before do not work any more: muster invite makes new ones."))
  }

  /// Names the members that go, and those that came by the same invite and stay.
  private static func lines(_ preview: Administration.Reply, in channel: String) -> [String] {
    guard let removal = preview.removal else { return [] }
    let known = preview.channels.first?.members ?? []
    func list(_ ids: [String]) -> String {
      ids.map { ChannelTable.label($0, known) }.joined(separator: ", ")
    }
    guard !removal.members.isEmpty else { return ["No member came by that invite."] }
    var lines = ["Goes: \(list(removal.members))."]
    if let invite = removal.invite, !removal.staying.isEmpty {
      lines += [
        "Came by the same invite and stays: \(list(removal.staying)).",
        "To remove all of them: muster channel revoke \(Words.quoted(channel)) \(invite)",
      ]
    }
    return lines
  }
}

/// Parsing and formatting of command-line words.
package enum Words {
  static func role(_ text: String) throws(MusterError) -> Role {
    guard let role = Role(name: text), role != .none else {
      throw MusterError(
        "there is no role \(shown(text))", hint: "one of presenter, attendee, consumer and owner",
        kind: .usage)
    }
    return role
  }

  /// Untrusted text, sanitised for the terminal.
  package static func shown(_ text: String) -> String { DisplayText.sanitized(text, limit: 128) }

  /// A word quoted for the shell if necessary.
  static func quoted(_ text: String) -> String {
    let isPlain = text.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "."),
        UInt8(ascii: "-"):
        true
      default: false
      }
    }
    if isPlain, !text.hasPrefix("-") { return text }
    let parts = text.split(separator: "'", omittingEmptySubsequences: false)
    return "'\(parts.joined(separator: "'\\''"))'"
  }
}
