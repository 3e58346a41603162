import Muster

// Two nodes in one process meet in a channel, have a call and exchange a message. Everything that
// a program needs is in the module Muster. It keeps to loopback and leaves nothing on the disk.

/// A member without a camera that sends the test pattern, known to nobody outside this process. It
/// shows no video, so it says how much it wants nevertheless.
func member(_ name: String, in channel: Configuration.Channel) async throws -> MusterNode {
  var configuration = Configuration()
  configuration.name = name
  configuration.channels = [channel]
  configuration.interfaces = ["lo"]
  configuration.video = "test:320x180@15"
  configuration.maxVideo = VideoSize(width: 320, height: 180)
  configuration.isEphemeral = true
  return try await MusterNode.start(configuration)
}

let name = "example-\(UInt64.random(in: 0 ... .max))"
guard let key = ChannelKey.fromPassphrase("correct horse battery staple", name: name) else {
  throw MusterError("not enough memory for the passphrase", hint: "close something")
}
let channel = Configuration.Channel(name: name, source: .open(key))
let anna = try await member("anna", in: channel)
let berta = try await member("berta", in: channel)

try await anna.startCall(in: name)
events: for await event in berta.events() {
  switch event.event {
  case .memberJoined(_, let member): print("\(member.name) is here")
  case .callStarted(_, let call):
    print("a call by \(call.info.initiator)")
    try await berta.joinCall(in: name)
  case .firstFrame(_, let member, _, _, let size):
    print("the first picture of \(member) has \(size)")
    try await anna.say("Hello, Berta.", to: berta.id, in: name)
  case .message(_, let message):
    print("\(message.from) writes: \(message.text)")
    break events
  default: break
  }
}
for member in await berta.members(in: name) { print("\(member.name) is \(member.role.name)") }
await anna.stop()
await berta.stop()
print("done")
