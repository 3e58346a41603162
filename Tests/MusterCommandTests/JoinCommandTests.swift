import ArgumentParser
import Muster
import MusterBase
import MusterCommand
import Testing

/// Flags of `muster join`, and what is wrong with them.
struct JoinCommandTests {
  /// Flags that keep the tests away from this machine's devices.
  private static let quiet = ["--video", "none", "--audio", "none", "--speaker", "none"]

  private func parse(_ arguments: [String]) throws -> JoinCommand {
    try JoinCommand.parse(CommandLineTool.normalized(arguments) + Self.quiet)
  }

  private func problem(_ body: () throws -> Void) -> MusterError? {
    do { try body() } catch { return error as? MusterError }
    return nil
  }

  @Test(arguments: [
    (["lab", "--view"], 0), (["lab", "--view", "8080"], 8080), (["--view", "8080", "lab"], 8080),
    (["lab"], 0), (["--view", "lab"], 0),
  ])
  func thePagesPort(arguments: [String], port: Int) throws {
    let command = try parse(arguments)
    #expect(try command.checkedPort() == port)
    #expect(command.channels == ["lab"])
  }

  @Test(arguments: ["80x", "99999", "8080.5", "0x50"], [true, false])
  func aBadPortIsNeverAChannel(text: String, isJoined: Bool) throws {
    let option = isJoined ? ["--view=\(text)"] : ["--view", text]
    let command = try parse(["lab"] + option)
    let error = try #require(problem { _ = try command.checkedPort() })
    #expect(error.message.contains(text) && error.kind == .usage)
    #expect(command.channels == ["lab"])
  }

  @Test func videoIsLimitedInSizeAndRate() throws {
    let size = try parse(["lab", "--max-video", "320x180"]).nodeConfiguration().0
    #expect(size.maxVideo == VideoSize(width: 320, height: 180) && size.maxFramesPerSecond == nil)
    let both = try parse(["lab", "--max-video", "320x180@15"]).nodeConfiguration().0
    #expect(both.maxVideo == VideoSize(width: 320, height: 180) && both.maxFramesPerSecond == 15)
  }

  @Test(arguments: [("2", 2), ("0", 0)]) func streamsAreLimited(text: String, most: Int) throws {
    let given = try parse(["lab", "--max-streams", text]).nodeConfiguration().0
    #expect(given.maxStreams == most)
    #expect(try parse(["lab"]).nodeConfiguration().0.maxStreams == nil)
  }

  @Test func aPageAndNoPageExcludeEachOther() throws {
    let command = try parse(["lab", "--view", "--no-view"])
    #expect(problem { _ = try command.checkedPort() }?.message.contains("exclude") == true)
  }

  @Test(arguments: ["1", "0.5", "1e9", "86400"]) func timesThatAreTaken(text: String) throws {
    try parse(["lab", "--for", text]).checkTime()
  }

  @Test(arguments: ["0", "nan", "inf", "1.1e9", "-3", "-.5"])
  func timesThatAreNone(text: String) throws {
    let command = try parse(["lab", "--for", text])
    let error = try #require(problem { try command.checkTime() })
    #expect(error.kind == .usage && error.hint.contains("1e9"))
  }

  @Test func twoInvitesAreAnError() throws {
    let command = try parse(["--invite", "muster://a", "--invite", "muster://b"])
    let error = try #require(problem { _ = try command.nodeConfiguration() })
    #expect(error.message == "--invite is given 2 times" && error.kind == .usage)
  }

  @Test(arguments: [
    (["lab", "--call", "--watch"], "exclude"), (["lab", "lab"], "twice"), ([], "no channel"),
    (["lab", "--max-streams=-1"], "out of range"),
    (["lab", "--max-video", "big"], "size"), (["lab", "--max-video", "640x360@"], "size"),
    (["lab", "--max-video", "640x360@255"], "size"), (["lab", "--max-video", "@15"], "size"),
    (["lab", "--video-bitrate", "1"], "range"),
    (["lab", "--passphrase", "x", "--key-file", "y"], "exclude"), (["a\nb"], "no channel name"),
    (["lab", "--name", ""], "empty"),
  ])
  func optionsThatExcludeEachOtherAreNamed(arguments: [String], word: String) throws {
    let command = try parse(arguments)
    let error = try #require(problem { _ = try command.nodeConfiguration() })
    #expect(error.message.contains(word) && error.kind == .usage && !error.hint.isEmpty)
  }

  @Test(arguments: [("audio", true, false), ("video", false, true), ("both", true, true)])
  func enteringMuted(text: String, audio: Bool, video: Bool) throws {
    let configuration = try parse(["lab", "--muted", text]).nodeConfiguration().0
    #expect(configuration.audioMuted == audio && configuration.videoMuted == video)
    let command = try parse(["lab", "--muted", "smell"])
    #expect(problem { _ = try command.nodeConfiguration() }?.hint.contains("both") == true)
  }

  @Test(arguments: [["--bogus"], ["lab", "--for", "soon"]])
  func otherArgumentsAreRefused(arguments: [String]) {
    #expect(throws: (any Error).self) { try parse(arguments) }
  }

  @Test func aLogLevelThatThereIsNot() throws {
    let command = try parse(["lab", "--log-level", "loud"])
    #expect(problem { _ = try command.parsedLogLevel() }?.hint.contains("debug") == true)
  }
}
