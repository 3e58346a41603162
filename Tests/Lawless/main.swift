import Glibc
import Muster
import MusterChannel

// A node that ignores what its role forbids: it starts calls and sends video and audio as a
// consumer. The lab checks run it against honest nodes, none of which may take notice.
//
//   muster-lawless join --invite URL --data DIR --interface NAME

func report(_ value: JSONValue) {
  let line = Array((value.text + "\n").utf8)
  _ = write(STDOUT_FILENO, line, line.count)
}

var configuration = Configuration()
configuration.name = "rogue"
configuration.video = "test:320x180@15"
configuration.audio = "tone"
configuration.policy = ChannelPolicy(name: "lawless", permits: { $0 || $1 })
var arguments = CommandLine.arguments.dropFirst(2)
while let option = arguments.popFirst(), let value = arguments.popFirst() {
  switch option {
  case "--data": configuration.dataDirectory = value
  case "--interface": configuration.interfaces.append(value)
  case "--invite":
    let invite = try Invite(url: value)
    configuration.channels.append(.init(name: invite.name, source: .invite(invite)))
  default: fatalError("no option \(option)")
  }
}

let node = try await MusterNode.start(configuration)
let events = node.events()
report(node.readyEvent(page: nil).json)
Task.detached {
  while let line = readLine() {
    guard let command = try? Command(json: Array(line.utf8)) else { continue }
    if command == .quit { break }
    _ = try? await node.perform(command)
  }
  await node.stop()
}
for await event in events { report(event.json) }
