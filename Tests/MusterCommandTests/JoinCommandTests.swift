import ArgumentParser
import Muster
import MusterBase
import MusterCommand
import Testing

/// Flags of `muster join`, and what is wrong with them.
struct JoinCommandTests {
  private func parse(_ arguments: [String]) throws -> Settings {
    try SettingsTests.settings(arguments)
  }

  /// The fault in the settings, or in the channels that they name; nil if there is none.
  private func problem(_ arguments: [String]) throws -> MusterError? {
    do {
      let settings = try parse(arguments)
      _ = try settings.configuration()
      var notices: [MusterError] = []
      _ = try ChannelKeys.resolve(settings, &notices)
      return nil
    } catch let error as MusterError {
      return error
    }
  }

  @Test(arguments: [
    (["lab", "--view"], 0), (["lab", "--view", "8080"], 8080), (["--view", "8080", "lab"], 8080),
    (["lab"], 0), (["--view", "lab"], 0),
  ])
  func thePagesPort(arguments: [String], port: Int) throws {
    let settings = try parse(arguments)
    #expect(try settings.pagePort() == port)
    #expect(settings.options.channels == ["lab"])
  }

  @Test(arguments: ["80x", "99999", "8080.5", "0x50"], [true, false])
  func aBadPortIsNeverAChannel(text: String, isJoined: Bool) throws {
    let option = isJoined ? ["--view=\(text)"] : ["--view", text]
    let error = try #require(try problem(["lab"] + option))
    #expect(error.message.contains(text) && error.kind == .usage)
    #expect(try parse(["lab"] + option).options.channels == ["lab"])
  }

  @Test func videoIsLimitedInSizeAndRate() throws {
    let size = try parse(["lab", "--max-video", "320x180"]).configuration()
    #expect(size.maxVideo == VideoSize(width: 320, height: 180) && size.maxFramesPerSecond == nil)
    let both = try parse(["lab", "--max-video", "320x180@15"]).configuration()
    #expect(both.maxVideo == VideoSize(width: 320, height: 180) && both.maxFramesPerSecond == 15)
  }

  @Test(arguments: [("2", 2), ("0", 0)]) func streamsAreLimited(text: String, most: Int) throws {
    let given = try parse(["lab", "--max-streams", text]).configuration()
    #expect(given.maxStreams == most)
    #expect(try parse(["lab"]).configuration().maxStreams == nil)
  }

  @Test func aPageAndNoPageExcludeEachOther() throws {
    #expect(try problem(["lab", "--view", "--no-view"])?.message.contains("exclude") == true)
  }

  @Test(arguments: ["1", "0.5", "1e9", "86400"]) func timesThatAreTaken(text: String) throws {
    #expect(try parse(["lab", "--for", text]).runningTime() == Double(text))
  }

  @Test(arguments: ["0", "nan", "inf", "1.1e9", "-3", "-.5"])
  func timesThatAreNone(text: String) throws {
    let error = try #require(try problem(["lab", "--for", text]))
    #expect(error.kind == .usage && error.hint.contains("1e9"))
  }

  @Test func twoInvitesAreAnError() throws {
    let arguments = ["--invite", "muster://a", "--invite", "muster://b"]
    let error = try #require(try problem(arguments))
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
    let error = try #require(try problem(arguments))
    #expect(error.message.contains(word) && error.kind == .usage && !error.hint.isEmpty)
  }

  @Test(arguments: [("audio", true, false), ("video", false, true), ("both", true, true)])
  func enteringMuted(text: String, audio: Bool, video: Bool) throws {
    let configuration = try parse(["lab", "--muted", text]).configuration()
    #expect(configuration.audioMuted == audio && configuration.videoMuted == video)
    #expect(try problem(["lab", "--muted", "smell"])?.hint.contains("both") == true)
  }

  @Test(arguments: [["--bogus"], ["lab", "--for", "soon"]])
  func otherArgumentsAreRefused(arguments: [String]) {
    #expect(throws: (any Error).self) { try parse(arguments) }
  }

  @Test func aLogLevelThatThereIsNot() throws {
    #expect(try problem(["lab", "--log-level", "loud"])?.hint.contains("debug") == true)
  }
}
