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

  @Option(help: "When it ends: 30m, 2h, 7d, 2026-12-31, 2026-12-31T18:00Z or never.")
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
      The owner only. Whoever is removed loses its role and the channel's key; everyone else gets a \
      new key, also those who are away, as soon as they meet somebody who has it. Invites from \
      before do not work any more; make new ones. In a channel without an owner nobody can be \
      removed. See muster channel show for who came by which invite.
      """)

  @Argument(help: "The channel.")
  var name: String

  @Argument(help: "The member by its id, full key or name, or the invite by its id.")
  var member: String

  @Flag(help: "Only say what would be removed.")
  var dryRun = false

  @OptionGroup var options: DataOptions

  func run() async throws {
    var query = Administration.Request(.show)
    query.channel = name
    let channel = try await options.perform(query).channels.first
    let removal = channel.map { Removal(of: member, from: $0) }
    if !options.json { for line in removal?.lines ?? [] { print(line) } }
    if dryRun {
      guard let removal, !removal.lines.isEmpty else {
        throw MusterError(
          "\(Words.shown(member)) is not one member or invite of \(Words.shown(name))",
          hint: "see muster channel show")
      }
      var preview = Administration.Reply()
      preview.removed = removal.members
      if options.json { print(preview.json.text) }
      return
    }
    var request = Administration.Request(.revoke)
    request.channel = name
    request.member = member
    let reply = try await options.perform(request)
    if options.json { return print(reply.json.text) }
    print("\(Words.shown(member)) is removed from \(Words.shown(name)), which has a new key.")
    print(Style.dim("Invites from before do not work any more: muster invite makes new ones."))
  }
}

/// The members that go with a member or an invite, as far as the summary of the channel says.
struct Removal {
  /// The ids of those who go.
  var members: [String] = []
  /// What to tell the user before anybody is removed.
  var lines: [String] = []

  init(of text: String, from channel: Administration.ChannelSummary) {
    if let invite = channel.invites.first(where: { $0.invite == text }) {
      members = invite.confirmed + invite.provisional
      let people = ChannelTable.people(of: invite, channel.members)
      lines = ["Invite \(invite.invite) ends, and these go: \(Self.list(people))."]
      return
    }
    let named = channel.members.filter { [$0.member, $0.key, $0.name].contains(text) }
    guard named.count == 1, let member = named.first else { return }
    members = [member.member]
    lines = ["\(ChannelTable.label(member.member, channel.members)) goes."]
    let invite = channel.invites.first { $0.invite == member.invite }
    let others = (invite?.confirmed ?? []).filter { $0 != member.member }
    guard let invite, !others.isEmpty else { return }
    let people = others.map { ChannelTable.label($0, channel.members) }
    lines += [
      "These came by the same invite and stay: \(Self.list(people)).",
      "To remove them too: muster channel revoke \(Words.quoted(channel.name)) \(invite.invite)",
    ]
  }

  private static func list(_ people: [String]) -> String {
    people.isEmpty ? "nobody has come by it" : people.joined(separator: ", ")
  }
}

/// Parsing and formatting of command-line words.
enum Words {
  static func role(_ text: String) throws(MusterError) -> Role {
    guard let role = Role(name: text), role != .none else {
      throw MusterError(
        "there is no role \(shown(text))", hint: "one of presenter, attendee, consumer and owner",
        kind: .usage)
    }
    return role
  }

  /// Untrusted text, sanitised for the terminal.
  static func shown(_ text: String) -> String { DisplayText.sanitized(text, limit: 128) }

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
