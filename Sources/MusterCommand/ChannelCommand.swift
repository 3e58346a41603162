import ArgumentParser
import Muster
import MusterBase
import MusterWire

/// The command `muster channel`, which manages channels with an owner and the roles in them.
struct ChannelCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "channel",
    abstract: "Create channels and say who may do what in them.",
    discussion: """
      Whoever creates a channel owns it, and gives the others roles: presenters may start calls, \
      attendees join and send video and audio, consumers only listen and write. Others come in by \
      muster invite. What is changed here reaches the others as soon as this node, or another that \
      knows of it, is in the channel with them.
      """,
    subcommands: [
      ChannelCreateCommand.self, ChannelListCommand.self, ChannelShowCommand.self,
      ChannelGrantCommand.self, ChannelRevokeCommand.self,
    ])
}

/// The options of every command that reads the data directory.
struct DataOptions: ParsableArguments {
  @Option(help: "Where channels and the identity are kept (default: the XDG data directory).")
  var data: String?

  @Flag(help: "As one JSON object.")
  var json = false

  func perform(
    _ request: Administration.Request
  ) async throws(MusterError) -> Administration.Reply {
    try await Administration.perform(request, data: data)
  }
}

/// The command `muster channel create`, which creates a channel owned by this node's identity.
struct ChannelCreateCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "create", abstract: "Create a channel that this node's identity owns.")

  @Argument(help: "What the channel is to be called.")
  var name: String

  @Flag(
    name: .customLong("call-ends-with-initiator"),
    help: "A call whose initiator has vanished ends, and is not handed over.")
  var callEndsWithInitiator = false

  @Flag(
    name: .customLong("only-presenters-send"),
    help: "Attendees, too, only listen and write.")
  var onlyPresentersSend = false

  @OptionGroup var options: DataOptions

  func run() async throws {
    try ChannelKeys.check(name)
    var request = Administration.Request(.create)
    request.channel = name
    request.settings = ChannelSettings(
      callEndsWithInitiator: callEndsWithInitiator, onlyPresentersSend: onlyPresentersSend)
    let reply = try await options.perform(request)
    if options.json { return print(reply.json.text) }
    print("Channel \(name) is created, and this node's identity owns it.")
    print(Style.dim("Invite others with: muster invite \(Words.quoted(name))"))
  }
}

/// The command `muster channel list`, which lists the channels in the data directory.
struct ChannelListCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List the channels that are remembered.")

  @OptionGroup var options: DataOptions

  func run() async throws {
    let reply = try await options.perform(Administration.Request(.list))
    if options.json { return print(reply.json.text) }
    guard !reply.channels.isEmpty else {
      return print("No channels yet: muster channel create NAME makes one.")
    }
    for line in ChannelTable.lines(reply.channels) { print(line) }
  }
}

/// The command `muster channel show`, which shows a channel's members and their roles.
struct ChannelShowCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Show a channel and who has which role in it.")

  @Argument(help: "The channel.")
  var name: String

  @OptionGroup var options: DataOptions

  func run() async throws {
    var request = Administration.Request(.show)
    request.channel = name
    let reply = try await options.perform(request)
    if options.json { return print(reply.json.text) }
    for channel in reply.channels {
      for line in ChannelTable.details(channel) { print(line) }
    }
  }
}
