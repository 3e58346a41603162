import ArgumentParser
import CMusterProcess
import Muster
import MusterDevices
import MusterNetwork
import MusterSystem

/// The command line of Muster, for the executable `muster` and for tests.
public enum CommandLineTool {
  /// Runs the command in the process's arguments; exits with code 2 after a usage error and with
  /// code 1 after a failure.
  public static func main() async { await run(RootCommand.self) }

  /// Runs a tool of Muster, whose commands are the subcommands of `root`, as `main` does.
  package static func run(_ root: (some ParsableCommand).Type) async {
    _ = ProcessClock.startedAt
    CoreDump.forbid()
    FileLimit.raise()
    signal(SIGPIPE, SIG_IGN)  // write(2) then reports a closed pipe as EPIPE
    let tool = root.configuration.commandName ?? "muster"
    do {
      var command = try root.parseAsRoot(normalized(Array(arguments.dropFirst())))
      if var command = command as? any AsyncParsableCommand {
        try await command.run()
      } else {
        try command.run()
      }
      try flush()
    } catch let error as MusterError {
      fail(error, of: tool)
    } catch let error as DeviceError {
      fail(MusterError(error), of: tool)
    } catch let code as ExitCode {
      MusterSystem.exit(code.rawValue)
    } catch {
      if root.exitCode(for: error) == .success {
        print(root.fullMessage(for: error))
        do { try flush() } catch { fail(error, of: tool) }
        MusterSystem.exit(0)
      }
      standardError("\(tool): \(root.message(for: error)): see \(tool) --help")
      MusterSystem.exit(2)
    }
  }

  /// The arguments of the process, its name first.
  private static var arguments: [String] {
    (0..<Int(muster_argument_count())).compactMap { index in
      muster_argument(Int32(index)).map { String(cString: $0) }
    }
  }

  /// Writes what is left of standard output. Throws if it cannot be written: a script must not take
  /// half of it for the whole.
  private static func flush() throws(MusterError) {
    let failure = muster_flush_output()
    guard failure < 0 else { return }
    throw MusterError("cannot write standard output", hint: SystemError.text(of: -failure))
  }

  private static func fail(_ error: MusterError, of tool: String) -> Never {
    standardError("\(tool): \(error)")
    MusterSystem.exit(error.kind == .usage ? 2 : 1)
  }

  /// The arguments in the form in which swift-argument-parser takes them for what they mean:
  /// `--view=8080` in two, because it drops the value of an option with an optional one after an
  /// equals sign, and `--for -3` in one, because it takes a negative number for another option.
  package static func normalized(_ arguments: [String]) -> [String] {
    var result: [String] = []
    for argument in arguments {
      let isNegative = argument.hasPrefix("-") && Double(argument) != nil
      let option = result.last.flatMap {
        $0.hasPrefix("--") && !["--", "--view"].contains($0) ? $0 : nil
      }
      if argument.hasPrefix("--view=") {
        result += ["--view", String(argument.dropFirst("--view=".count))]
      } else if isNegative, let option, !option.contains("=") {
        result[result.count - 1] = "\(option)=\(argument)"
      } else {
        result.append(argument)
      }
    }
    return result
  }
}

/// The command `muster`, which contains all other commands as subcommands.
struct RootCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "muster",
    abstract: "Video calls without a server: nodes that find each other and talk, encrypted.",
    discussion: """
      Try it on this machine:           muster demo
      Agree on a passphrase:            export MUSTER_PASSPHRASE='a good long one'
      Meet others on the same network:  muster join kitchen --call
      Decide who may join, and how:     muster channel create crew; muster invite crew
      When something does not work:     muster doctor
      """,
    version: "0.1.0",
    subcommands: [
      JoinCommand.self, ChannelCommand.self, InviteCommand.self, VerifyCommand.self,
      IdentityCommand.self, PingCommand.self, RendezvousCommand.self,
      DevicesCommand.self, DoctorCommand.self, ConfigCommand.self, DemoCommand.self,
      MovedCommand.Simulate.self, MovedCommand.Bench.self,
    ])
}
