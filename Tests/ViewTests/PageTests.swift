import FoundationEssentials
import Muster
import MusterView
import NIOPosix
import Testing

@Suite(.timeLimit(.minutes(2)))
struct PageTests {
  @Test func theFirstSnapshotComesUnasked() async throws {
    try await TestPage.run { page in
      #expect(!page.server.wantsFrames)
      let client = try TestClient(port: page.port)
      let path = "/ws?t=\(TestPage.token)"
      let status = try await client.upgrade(path, host: page.host, origin: page.origin)
      #expect(status == 101)
      let text = try await client.receive().text
      #expect(text.contains(#""type":"snapshot""#))
      #expect(text.contains(#""self":{"#))
      #expect(text.contains(#""tile":1"#))
      #expect(text.contains(#""role":"owner""#))
      #expect(page.server.wantsFrames)
    }
  }

  /// A page takes a node that sends nothing for 2.5 s for one that does not respond.
  @Test func theStateIsRepeatedWithoutChanges() async throws {
    try await TestPage.run { page in
      let client = try await page.openEmpty()
      for _ in 0..<2 {
        _ = try await client.receive { $0.text.contains(#""type":"snapshot""#) }
      }
    }
  }

  @Test func theNodeLearnsWhatThePagesShow() async throws {
    try await TestPage.run { page in
      var shown = page.shown.makeAsyncIterator()
      let client = try await page.openEmpty()
      #expect(await shown.next() == .some([]))
      try await client.send(#"{"do":"show","tiles":[{"tile":1,"width":640,"height":360}]}"#)
      #expect(await shown.next() == .some([TestPage.tiles[0]]))
      let other = try await page.openEmpty()
      #expect(await shown.next() == .some([TestPage.tiles[0]]))
      try await other.send(
        #"{"do":"show","tiles":[{"tile":0,"width":160,"height":90,"fps":15},{"tile":0,"width":9,"#
          + #""height":9}]}"#)
      #expect(await shown.next() == .some(TestPage.tiles))
      client.disconnect()
      #expect(await shown.next() == .some([TestPage.tiles[1]]))
      try await other.send(
        #"{"do":"show","tiles":[{"tile":1,"width":640,"height":360,"fps":15,"pin":true}]}"#)
      #expect(
        await shown.next() == [ShownTile(tile: 1, width: 640, height: 360, fps: 15, pin: true)])
      other.disconnect()
      #expect(await shown.next() == .some(nil))
    }
  }

  @Test(arguments: [
    #"{"do":"show"}"#, #"{"do":"show","tiles":1}"#, #"{"do":"show","tiles":[{"tile":1}]}"#,
    #"{"do":"show","tiles":[{"tile":256,"width":1,"height":1}]}"#,
  ])
  func tilesThatCannotBeReadAreAnError(message: String) async throws {
    try await TestPage.run { page in
      let client = try await page.openEmpty()
      try await client.send(message)
      let answer = try await client.receive { $0.text.contains("error") }
      #expect(answer.text.contains("the tiles that are shown cannot be read"))
    }
  }

  @Test func framesOfTilesThatAreNotShownAreNotSent() async throws {
    try await TestPage.run { page in
      let client = try await page.openEmpty()
      try await client.send(#"{"do":"show","tiles":[{"tile":0,"width":160,"height":90}]}"#)
      for await tiles in page.shown where tiles?.count == 1 { break }
      page.server.offer(TestPage.frame(1, isKeyframe: true))
      try await client.send(
        #"{"do":"show","tiles":[{"tile":0,"width":1,"height":1},{"tile":1,"width":1,"height":1}]}"#)
      for await tiles in page.shown where tiles?.count == 2 { break }
      page.server.offer(TestPage.frame(2, isKeyframe: false))
      page.server.offer(TestPage.frame(3, isKeyframe: true))
      let first = try await client.receive { $0.opcode == 2 }
      #expect(first.data.last == 3, "the first frame is a keyframe")
    }
  }

  @Test func aTileThatComesIntoViewIsAskedForAKeyframe() async throws {
    try await TestPage.run { page in
      let client = try await page.open()
      var asked: [Command] = []
      for await command in page.commands {
        asked.append(command)
        if asked.count == 2 { break }
      }
      #expect(asked.contains(.keyframe(member: "00000000000000aa", channel: "lab")))
      #expect(asked.contains(.keyframe(member: "00000000000000bb", channel: "lab")))
      _ = client
    }
  }

  @Test func aCommandReachesTheNodeAsItWasSent() async throws {
    try await TestPage.run { page in
      let client = try await page.open()
      try await client.send(#"{"do":"mute","media":"audio","channel":"lab"}"#)
      for await seen in page.commands where seen.verb != .keyframe {
        #expect(seen == .mute(.audio, channel: "lab"))
        break
      }
    }
  }

  @Test func messagesComeInTheirOrderAndHarmless() async throws {
    try await TestPage.run { page in
      let client = try TestClient(port: page.port)
      _ = try await client.upgrade(
        "/ws?t=\(TestPage.token)", host: page.host, origin: page.origin)
      let message = try await client.receive { $0.opcode == 1 }
      let seen = try JSONDecoder().decode(Seen.self, from: Data(message.data))
      #expect(seen.snapshot == TestPage.snapshot)
      #expect(seen.snapshot.messages.map(\.to) == [nil, "00000000000000aa"])
    }
  }

  /// A message from the server to a page, parsed as the page parses it.
  private struct Seen: Decodable {
    var snapshot: ViewSnapshot
  }

  @Test func aTextReachesTheNodeAsItWasWritten() async throws {
    try await TestPage.run { page in
      let client = try await page.open()
      try await client.send(#"{"do":"say","text":"hé \"you\"","channel":"lab"}"#)
      for await seen in page.commands where seen.verb != .keyframe {
        #expect(seen == .say("hé \"you\"", channel: "lab"))
        break
      }
    }
  }

  @Test func aCommandThatFailsIsAnswered() async throws {
    try await TestPage.run { page in
      let client = try await page.open()
      try await client.send(TestPage.impossible.json)
      let answer = try await client.receive { $0.text.contains(#""type":"error""#) }.text
      #expect(answer.contains(TestPage.error))
      #expect(answer.contains(#""command":"leave-call""#))
    }
  }

  @Test(arguments: ["", "{", "[]", "{}", #"{"do":1}"#, "null", "\u{0}"])
  func rubbishIsAnsweredAndHarmsNothing(_ rubbish: String) async throws {
    try await TestPage.run { page in
      let client = try await page.open()
      try await client.send(rubbish)
      let answer = try await client.receive { $0.text.contains(#""type":"error""#) }.text
      #expect(answer.contains("not a command"))
      try await client.send(TestPage.impossible.json)
      _ = try await client.receive { $0.text.contains(TestPage.error) }
    }
  }

  @Test func keyframeRequestsAreLimited() async throws {
    try await TestPage.run { page in
      let client = try await page.open()
      let count = 20
      for _ in 0..<count {
        try await client.send(#"{"do":"keyframe","member":"00000000000000bb"}"#)
        try await client.send(#"{"do":"keyframe","member":"a stranger"}"#)
      }
      try await client.send(#"{"do":"mute","media":"audio"}"#)
      var keyframes = 0
      for await command in page.commands {
        #expect(command != .keyframe(member: "a stranger"))
        if command == .mute(.audio) { break }
        if case .keyframe("00000000000000bb", _, _) = command { keyframes += 1 }
      }
      #expect(keyframes < count)
    }
  }

  @Test func aTooLongMessageEndsTheConnection() async throws {
    try await TestPage.run { page in
      let client = try await page.open()
      try? await client.send(String(repeating: "x", count: 70_000))
      await #expect(throws: (any Error).self) {
        // Snapshots may still come before the close frame and the end.
        while try await client.receive().opcode != 8 {}
        _ = try await client.receive()
      }
    }
  }

  @Test func stoppingSaysGoodByeToThePages() async throws {
    try await TestPage.run { page in
      let client = try await page.open()
      await page.server.stop()
      let last = try await client.receive { $0.opcode == 8 }
      #expect(last.data == [0x03, 0xE9])  // 1001, going away
    }
  }
}
