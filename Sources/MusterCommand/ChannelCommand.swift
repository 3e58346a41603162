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
      knows of it, is in the channel with them. Where two channels have one name, name them by \
      their ids, of which 16 digits suffice: muster channel list shows them.
      """,
    subcommands: [
      ChannelCreateCommand.self, ChannelListCommand.self, ChannelShowCommand.self,
      ChannelGrantCommand.self, ChannelRevokeCommand.self, ChannelRenameCommand.self,
      ChannelForgetCommand.self,
    ])
}

/// The options of every command that reads the data directory.
struct DataOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Where channels and the identity are kept (default: the XDG data directory).",
      valueName: "dir"), completion: .directory)
  var data: String?

  @Flag(help: "As one JSON object.")
  var json = false

  @OptionGroup var file: SettingsFileOptions

  /// The data directory: the option's, else that of the settings.
  func directory() throws(MusterError) -> String? { try Settings(data: data, file).dataDirectory() }

  func perform(
    _ request: Administration.Request
  ) async throws(MusterError) -> Administration.Reply {
    try await Administration.perform(request, data: directory())
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
    try ChannelName.check(name)
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

/// The command `muster channel rename`, which changes the name of a channel on this machine.
struct ChannelRenameCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rename", abstract: "Give a channel another name on this machine.",
    discussion: """
      The others keep the name that they know. The name of a channel that anyone may join, without \
      a passphrase, is its key and cannot be changed.
      """)

  @Argument(help: "The channel, by its name or id.")
  var name: String

  @Argument(help: "What it is to be called here.")
  var newName: String

  @OptionGroup var options: DataOptions

  func run() async throws {
    try ChannelName.check(newName)
    var request = Administration.Request(.rename)
    request.channel = name
    request.name = newName
    let reply = try await options.perform(request)
    if options.json { return print(reply.json.text) }
    print("\(Words.shown(name)) is called \(newName) here.")
  }
}

/// The command `muster channel forget`, which deletes what is stored of a channel.
struct ChannelForgetCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "forget", abstract: "Delete all that is remembered of a channel.",
    discussion: """
      Its key, messages, members and verified codes are deleted on this machine; the others keep \
      theirs. To come back takes a new invite or the passphrase. Whoever forgets a channel that it \
      created can neither invite to it nor remove anybody any more.
      """)

  @Argument(help: "The channel, by its name or id.")
  var name: String

  @OptionGroup var options: DataOptions

  func run() async throws {
    var request = Administration.Request(.forget)
    request.channel = name
    let reply = try await options.perform(request)
    if options.json { return print(reply.json.text) }
    print("\(Words.shown(name)) is forgotten.")
    guard reply.channels.first?.isOwner == true else { return }
    print(Style.dim("You owned it: nobody can change its key or remove its members any more."))
  }
}
