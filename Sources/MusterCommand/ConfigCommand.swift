import ArgumentParser
import Muster
import MusterBase

/// The command `muster config`, which shows the settings in force and where each comes from.
struct ConfigCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "config",
    abstract: "Show each setting in force, and where it comes from.",
    discussion: """
      Takes the options of muster join, and shows with which settings a node would start: each is \
      taken from the command line, else from its variable, else from the settings file. Ends with \
      an error if one of them is wrong. --json gives one JSON object.
      """)

  @OptionGroup var options: JoinOptions
  @OptionGroup var file: SettingsFileOptions

  func run() async throws {
    let settings = try Settings(options, file)
    let report = SettingsReport(settings)
    if options.json == true {
      print(report.json.text)
    } else {
      for line in report.lines { print(line) }
    }
    for notice in settings.notices { standardError("muster: \(notice)") }
    _ = try settings.configuration()
  }
}
