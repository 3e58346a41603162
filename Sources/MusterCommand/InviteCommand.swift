import ArgumentParser
import Muster
import MusterBase
import MusterNetwork
import MusterSystem
import MusterWire

/// The command `muster invite`, which creates an invite to a channel.
struct InviteCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "invite",
    abstract: "Make an invite to a channel: a URL and, on a terminal, a QR code.",
    discussion: """
      Whoever has the invite may use it until it expires or somebody is removed: send it \
      as you would a password. It is for one person, unless --uses says otherwise; all who come by \
      one invite share what one member may take of the channel, and can be removed together. \
      Others join with muster join --invite URL, or with --invite FILE or --invite - so that it \
      does not stand in the process list.
      """)

  @Argument(help: "The channel.")
  var channel: String

  @Option(
    help: ArgumentHelp(
      "What those who come by it may do: presenter, attendee or consumer.", valueName: "role"),
    completion: .list(["presenter", "attendee", "consumer"]))
  var role = "attendee"

  @Option(
    help: ArgumentHelp(
      "When it ends: 30m, 2h, 7d, 2026-12-31, 2026-12-31T18:00Z or never.", valueName: "time"))
  var expires = "7d"

  @Option(
    name: .customLong("role-expires"),
    help: ArgumentHelp(
      "When the roles of those who come by it end (default: never).", valueName: "time"))
  var roleExpires: String?

  @Option(
    help: ArgumentHelp(
      "How many people may come by it: a number, or unlimited (default: 1).", valueName: "n"))
  var uses: String?

  @Option(
    help: ArgumentHelp(
      "An address where this node, or another member, can be found; may be repeated.",
      valueName: "host:port"))
  var peer: [String] = []

  @Option(
    help: ArgumentHelp(
      "The address of a rendezvous where members meet; may be repeated.", valueName: "host:port"))
  var rendezvous: [String] = []

  @Flag(inversion: .prefixedNo, help: "Show a QR code below the URL (default: on a terminal).")
  var qr: Bool?

  @OptionGroup var options: DataOptions

  func run() async throws {
    var request = Administration.Request(.invite)
    request.channel = channel
    request.role = try checkedRole()
    let expiresAt = try Expiry.parse(expires, now: Clocks.wallSeconds)
    request.expiresAt = expiresAt
    request.roleExpiresAt = try roleExpires.map { text throws(MusterError) in
      try Expiry.parse(text, of: "--role-expires", now: Clocks.wallSeconds)
    }
    request.uses = try uses.map(Self.count)
    request.peers = try Self.checked(peer, option: "--peer")
    request.rendezvous = try Self.checked(rendezvous, option: "--rendezvous")
    let reply = try await options.perform(request)
    guard let url = reply.invite else {
      throw MusterError("no invite came of it", hint: "update muster and the running node")
    }
    if options.json { return print(reply.json.text) }
    print(url)
    let isTerminal = isatty(STDOUT_FILENO) == 1
    if qr ?? isTerminal { show(url, isAsked: qr == true) }
    if isTerminal { print(Style.dim(meaning(of: url, until: expiresAt))) }
    if request.uses == 0 {
      standardError(
        "muster: warning: anyone who gets hold of this invite comes in: "
          + "end it with muster channel revoke \(Words.shown(channel)) and its id")
    }
  }

  /// The number of uses in `text`; 0 for any number.
  static func count(_ text: String) throws(MusterError) -> UInt32 {
    if text == "unlimited" { return 0 }
    guard let count = UInt32(text), 1...mostUses ~= count else {
      throw MusterError(
        "\"\(Words.shown(text))\" is not a number of uses",
        hint: "--uses takes 1 to \(mostUses), or unlimited", kind: .usage)
    }
    return count
  }

  private static let mostUses: UInt32 = 1000

  /// The role of the invite. Owner is refused, because anyone who obtains the invite could then
  /// take over the channel.
  private func checkedRole() throws(MusterError) -> Role {
    let role = try Words.role(role)
    guard role != .owner else {
      throw MusterError(
        "nobody becomes owner by an invite", hint: "use muster channel grant", kind: .usage)
    }
    return role
  }

  private func meaning(of url: String, until expiresAt: UInt64) -> String {
    let channel = Words.shown(channel)
    guard let invite = try? Invite(url: url), invite.genesis != nil else {
      return "\(channel) is open: whoever has this can join and send, at any time."
    }
    let end = expiresAt == Expiry.never ? "at any time" : "until \(Expiry.text(expiresAt))"
    let people =
      switch (try? uses.map(Self.count)) ?? 1 {
      case 0: "Whoever has this can"
      case 1: "One person can"
      case let count: "\(count) people can"
      }
    return "\(people) join \(channel) with this as \(role), \(end)."
  }

  /// Prints the QR code. A code wider than the terminal would be unreadable; it is printed only if
  /// the user requested the code (`isAsked`).
  private func show(_ url: String, isAsked: Bool) {
    guard let lines = QRCode.lines(url), let columns = QRCode.columns(url) else {
      return standardError("muster: the invite is too long for a QR code: give fewer hints")
    }
    guard isAsked || columns <= RawTerminal.size.columns else {
      return standardError(
        "muster: the QR code takes \(columns) columns: widen the terminal, or use --qr")
    }
    print("")
    for line in lines { print(line) }
  }

  private static func checked(
    _ hints: [String], option: String
  ) throws(MusterError) -> [String] {
    guard hints.count <= Limits.inviteHints else {
      throw MusterError(
        "\(option) is given \(hints.count) times", hint: "\(Limits.inviteHints) are the most",
        kind: .usage)
    }
    for hint in hints where !isEndpoint(hint) {
      throw MusterError(
        "\"\(Words.shown(hint))\" is not an address",
        hint: "\(option) takes HOST:PORT, such as 192.0.2.7:4711", kind: .usage)
    }
    return hints
  }

  private static func isEndpoint(_ text: String) -> Bool {
    text.utf8.count <= 255 && (try? PeerResolver.Endpoint(text, option: "")) != nil
  }
}
