import ArgumentParser
import Muster
import MusterNetwork
import MusterSystem

/// The command `muster rendezvous`, which runs a server for discovery between networks.
struct RendezvousCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rendezvous",
    abstract: "Be a meeting place for nodes on other networks.",
    discussion: """
      Start it on any machine that others can reach, and give them its address: muster join lab \
      --rendezvous HOST:PORT, or muster invite lab --rendezvous HOST:PORT. It keeps sealed \
      announcements for a minute, in memory only. It learns no names and no keys, and no call \
      needs it once its members have met. A member with a good address can be one as well: muster \
      join --offer-rendezvous.
      """)

  @Option(
    help: ArgumentHelp(
      "The address to listen on (default: every address, port 47475).", valueName: "host:port"))
  var listen: String?

  @Flag(
    name: .customLong("no-port-mapping"), help: "Do not have a router before it let others in.")
  var noPortMapping = false

  @Flag(help: "Say what happens as JSON lines.")
  var json = false

  @Option(
    name: .customLong("for"), help: ArgumentHelp("End after so many seconds.", valueName: "seconds")
  )
  var seconds: Double?

  func run() async throws {
    if let seconds, !(seconds > 0 && seconds.isFinite && seconds < 1e9) {
      throw MusterError("--for \(seconds) is no time", hint: "give seconds above 0", kind: .usage)
    }
    let host = try await RendezvousHost.start(listen: listen)
    // Before it says that it is ready: a signal that answers this has to unmap the port, too.
    let (running, end) = AsyncStream.makeStream(of: Never.self)
    Interruption.catchSignals { end.finish() }
    let addresses = host.listening.map { "\($0)" }
    if json {
      let ready = JSONValue.object([
        ("event", .string("ready")), ("schema", .integer(1)),
        ("listen", .array(addresses.map { .string($0) })),
      ])
      print(ready.text)
    } else {
      print("A rendezvous on \(addresses.joined(separator: ", ")); end it with Ctrl-C.")
    }
    fflush(nil)
    if !noPortMapping {
      let json = json
      await host.mapPort { Self.report($0, json: json) }
    }
    if let seconds {
      Task {
        try? await Task.sleep(for: .seconds(seconds))
        end.finish()
      }
    }
    for await _ in running {}
    await host.stop()
  }

  private static func report(_ mapping: PortMapping, json: Bool) {
    if json {
      let mapped = JSONValue.object([
        ("event", .string("mapped")), ("address", .string("\(mapping.outside)")),
        ("protocol", .string(mapping.method.rawValue)),
      ])
      print(mapped.text)
    } else {
      print("The router lets others in at \(mapping.outside) (by \(mapping.method.rawValue)).")
    }
    fflush(nil)
  }
}
