import Muster
import MusterBase
import Testing

struct CommandTests {
  private func parse(_ text: String) -> Command? { try? Command(json: Array(text.utf8)) }

  @Test func commandsOfTheContractAreUnderstood() {
    #expect(parse(#"{"do":"start-call"}"#) == .startCall())
    #expect(parse(#"{"do":"mute","media":"audio"}"#) == .mute(.audio))
    let watch = parse(#"{"do":"watch","member":"00ff","width":640,"height":360,"channel":"lab"}"#)
    let size = VideoSize(width: 640, height: 360)
    #expect(watch == .watch(.init(size, of: "00ff", channel: "lab")))
    let slow = parse(#"{"do":"watch","width":640,"height":360,"fps":15}"#)
    #expect(slow == .watch(.init(size, framesPerSecond: 15)))
    let pinned = parse(#"{"do":"watch","member":"00ff","width":640,"height":360,"pin":true}"#)
    #expect(pinned == .watch(.init(size, isPinned: true, of: "00ff")))
    #expect(parse(#"{"do":"watch","off":true}"#) == .watch(.init(nil)))
  }

  private static let all: [Command] = [
    .startCall(), .joinCall(channel: "lab"), .leaveCall(),
    .leaveCall(handOver: true, channel: "lab"), .mute(.audio),
    .unmute(.video, channel: "a"), .muteMember(.share, of: "00ff", channel: "lab"),
    .removeFromCall("00ff"),
    .watch(.init(VideoSize(width: 320, height: 180), of: "00ff")),
    .watch(.init(VideoSize(width: 320, height: 180), framesPerSecond: 15)),
    .watch(.init(VideoSize(width: 1, height: 1), isPinned: true, stream: "screen", of: "00ff")),
    .watch(.init(nil, channel: "lab")),
    .keyframe(member: "00ff", channel: "lab"), .say("hé \"you\"\n", to: "00ff", channel: "lab"),
    .joinChannel(.init(channel: "lab", passphrase: "p", call: true)),
    .joinChannel(.init(invite: "muster://x")), .leaveChannel(channel: "lab"), .quit,
    .administer(request(.create) { $0.settings.callEndsWithInitiator = true }),
    .administer(
      request(.grant) {
        $0.role = .presenter; $0.expiresAt = 1_800_000_000
      }),
    .administer(
      request(.invite) {
        $0.peers = ["a:1"]; $0.rendezvous = ["b:2", "c:3"]
      }),
    .administer(request(.verify) { $0.confirm = true }), .administer(.init(.diagnose)),
  ]

  private static func request(
    _ verb: Administration.Request.Verb, _ change: (inout Administration.Request) -> Void
  ) -> Administration.Request {
    var request = Administration.Request(verb)
    (request.channel, request.member) = ("lab", "anna")
    change(&request)
    return request
  }

  @Test(arguments: all) func encodedCommandsAreDecoded(command: Command) throws {
    #expect(try Command(json: Array(command.json.utf8)) == command)
  }

  @Test func theOrderOfFieldsIsThatOfTheContract() {
    #expect(
      Command.mute(.audio, channel: "lab").json == #"{"do":"mute","media":"audio","channel":"lab"}"#
    )
    #expect(Command.quit.json == #"{"do":"quit"}"#)
  }

  @Test(arguments: [
    (#"{"do":"dance"}"#, #""dance" is not a command"#, "start-call"),
    (#"{"do":"mute"}"#, "mute of what", #""audio" or "video""#),
    (#"{"do":"mute","media":"smell"}"#, #""smell" is not a medium"#, #""audio" or "video""#),
    (#"{"do":"mute-member","media":"audio"}"#, "which member", "member.joined"),
    (#"{"do":"mute-member","member":"a"}"#, "mute-member of what", #""share""#),
    (#"{"do":"remove-from-call"}"#, "which member", "member.joined"),
    (#"{"do":"watch","width":5}"#, "watch at which size", "height"),
    (#"{"do":"watch","width":5,"height":5,"fps":255}"#, "255 is no frame rate", "1 to 254"),
    (#"{"do":"watch","width":5,"height":5,"pin":true}"#, "pin which member", "member"),
    (#"{"do":"watch","member":"a","off":true,"pin":true}"#, "what is off cannot be pinned", "off"),
    (#"{"do":"watch","width":"wide"}"#, #""width" has a value of the wrong kind"#, "EVENTS"),
    (#"{"do":"say"}"#, "say what", "text"), (#"{"do":1}"#, "this is not a command", "do"),
    (#"{"do":"grant","role":"emperor"}"#, "there is no role emperor", "attendee"),
    (#"{"do":"grant","role":"none"}"#, "there is no role none", "attendee"),
  ])
  func theErrorSaysWhatIsWrong(json: String, message: String, hint: String) {
    do {
      _ = try Command(json: Array(json.utf8))
      Issue.record("it is a command")
    } catch {
      #expect(error.message == message)
      #expect(error.hint.contains(hint) && error.kind == .usage)
    }
  }

  @Test func aPageMayNotEndTheNodeNorGiveRoles() throws {
    for command in [Command.quit, .leaveChannel(), .administer(.init(.grant))] {
      #expect(throws: MusterError.self) { try command.check(from: .page) }
    }
    try Command.mute(.audio).check(from: .page)
    #expect(throws: MusterError.self) { try Command.administer(.init(.grant)).check(from: .host) }
    try Command.administer(.init(.grant)).check(from: .controlSocket)
  }

  @Test(arguments: [
    "", "{", "[]", "null", #"{"do":"dance"}"#, #"{"media":"audio"}"#, #"{"do":1}"#,
    #"{"do":"mute","media":"smell"}"#, #"{"do":"watch","width":1e99}"#, "\u{0}",
    #"{"do":"watch","width":"wide"}"#,
  ])
  func otherLinesAreRefusedWithAHint(text: String) {
    #expect(throws: MusterError.self) { try Command(json: Array(text.utf8)) }
  }

  @Test func anOverlongCommandIsRefused() {
    let text =
      #"{"do":"mute","media":"audio","member":""# + String(repeating: "a", count: 5000) + "\"}"
    #expect(parse(text) == nil)
  }

  @Test func randomBytesNeverTrap() {
    var prng = PRNG(seed: 20)
    for _ in 0..<5_000 {
      _ = try? Command(json: prng.bytes(prng.below(200)))
    }
    let valid = Array(#"{"do":"watch","member":"00ff","width":640,"height":360}"#.utf8)
    for _ in 0..<5_000 {
      var mutated = valid
      for _ in 0...prng.below(4) {
        mutated[prng.below(mutated.count)] = UInt8(truncatingIfNeeded: prng.next())
      }
      _ = try? Command(json: mutated)
    }
  }
}
