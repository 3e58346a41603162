import ArgumentParser
import Muster
import MusterBase
import MusterSystem

/// The command `muster identity`, which backs up and moves a node's identity.
struct IdentityCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "identity",
    abstract: "Back up this node's identity with its channels, or move it to another machine.",
    discussion: """
      An identity is what the others know this node by, and what owns the channels that it \
      created: if it is lost, nobody can change their keys any more. The backup is sealed with a \
      passphrase, without which it is worthless. It holds no messages. Roles that were given after \
      it was made come back when the node meets the others. Never run two nodes with one identity \
      at a time.
      """,
    subcommands: [IdentityExportCommand.self, IdentityImportCommand.self])
}

/// The options of both subcommands of `muster identity`.
struct IdentityOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The backup's passphrase (default: $MUSTER_IDENTITY_PASSPHRASE, or it is typed).",
      valueName: "text"))
  var passphrase: String?

  @OptionGroup var data: DataOptions

  /// The passphrase: the option, else the environment variable, else what is typed, twice if it
  /// `isNew`.
  func givenPassphrase(isNew: Bool) throws(MusterError) -> String {
    let variable = getenv("MUSTER_IDENTITY_PASSPHRASE").map { String(cString: $0) }
    var given = passphrase ?? variable
    if given == nil { given = try typed(isNew: isNew) }
    guard let given, !given.isEmpty else {
      throw MusterError("the passphrase is empty", hint: "give one", kind: .usage)
    }
    return given
  }

  private func typed(isNew: Bool) throws(MusterError) -> String {
    guard let typed = try PassphrasePrompt.ask("Passphrase of the backup: ") else {
      throw MusterError(
        "no passphrase is given",
        hint: "set MUSTER_IDENTITY_PASSPHRASE, or run this in a terminal", kind: .usage)
    }
    guard isNew, !typed.isEmpty else { return typed }
    guard try PassphrasePrompt.ask("Once more: ") == typed else {
      throw MusterError("the two passphrases differ", hint: "try again", kind: .usage)
    }
    return typed
  }
}

/// The command `muster identity export`, which writes a sealed backup.
struct IdentityExportCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "export", abstract: "Write this node's identity and its channels into a file.",
    discussion: "No node may run on the data directory meanwhile.")

  @Argument(help: "The file to make, which must not exist yet; - is standard output.")
  var file: String

  @OptionGroup var options: IdentityOptions

  func run() async throws {
    guard file != "-" || !options.data.json else {
      throw MusterError(
        "--json and - exclude each other: standard output takes one of them",
        hint: "name a file", kind: .usage)
    }
    guard file == "-" || access(file, F_OK) != 0 else {
      throw MusterError("\(Words.shown(file)) exists already", hint: "name a new file")
    }
    let directory = try options.data.directory()
    let passphrase = try options.givenPassphrase(isNew: true)
    if let warning = MusterError(weakBackupPassphrase: passphrase) {
      standardError("muster: warning: \(warning)")
    }
    let backup = try await IdentityBackup.export(data: directory, passphrase: passphrase)
    guard file != "-" else { return print(backup.text, terminator: "") }
    try TextFile.write(secret: backup.text, toNew: file)
    if options.data.json { return print(backup.summary.json.text) }
    print("\(IdentityWords.text(backup.summary)) is in \(Words.shown(file)).")
    print(Style.dim("Keep it and its passphrase apart. It goes back with: muster identity import"))
  }
}

/// The command `muster identity import`, which restores a sealed backup.
struct IdentityImportCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "import", abstract: "Take an identity and its channels from a backup.",
    discussion: """
      The data directory must not have another identity. If it has the same, what it lacks is added.
      """)

  @Argument(help: "The file that muster identity export made; - is standard input.")
  var file: String

  @OptionGroup var options: IdentityOptions

  func run() async throws {
    let text = try BackupFile.text(of: file)
    let directory = try options.data.directory()
    let passphrase = try options.givenPassphrase(isNew: false)
    let summary = try await IdentityBackup.restore(text, data: directory, passphrase: passphrase)
    if options.data.json { return print(summary.json.text) }
    print("\(IdentityWords.text(summary)) is restored.")
    print(Style.dim("Before it removes anybody from a channel, it has to meet another member."))
  }
}

private enum IdentityWords {
  /// What a backup is of, in a few words.
  static func text(_ summary: IdentityBackup.Summary) -> String {
    let identity = "Identity \(summary.member)"
    guard !summary.channels.isEmpty else { return "\(identity), which remembers no channel," }
    let names = summary.channels.map(Words.shown).joined(separator: ", ")
    return "\(identity) with \(names)"
  }
}

/// Reads the file of a backup.
private enum BackupFile {
  /// The content of a file, or of standard input for `-`.
  static func text(of path: String) throws(MusterError) -> String {
    let descriptor = path == "-" ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw unreadable(path) }
    defer { if path != "-" { close(descriptor) } }
    var status = stat()
    guard fstat(descriptor, &status) != 0 || status.st_size <= IdentityBackup.limit else {
      throw tooLong(path)
    }
    guard let bytes = TextFile.bytes(of: descriptor, limit: IdentityBackup.limit)
    else { throw unreadable(path) }
    guard bytes.count <= IdentityBackup.limit else { throw tooLong(path) }
    return String(decoding: bytes, as: UTF8.self)
  }

  private static func tooLong(_ path: String) -> MusterError {
    MusterError(
      "\(Words.shown(path)) is too long to be a backup", hint: "name the file that export made")
  }

  private static func unreadable(_ path: String) -> MusterError {
    MusterError(
      "cannot read \(Words.shown(path)) (\(SystemError.last))",
      hint: "check the path and its permissions")
  }
}
