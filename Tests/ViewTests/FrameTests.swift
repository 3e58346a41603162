import Muster
import MusterView
import NIOPosix
import Testing

@Suite(.timeLimit(.minutes(2)))
struct FrameTests {
  @Test func aFrameTravelsBehindItsHeader() async throws {
    try await TestPage.run { page in
      let client = try await page.open()
      page.server.offer(TestPage.frame(0x0102_0304, isKeyframe: true))
      let message = try await client.receive { $0.opcode == 2 }
      #expect(Array(message.data[0..<4]) == [1, 1, 1, 2])
      #expect(Array(message.data[4..<8]) == [4, 3, 2, 1])
      #expect(number(message.data[8..<16]) == 1.5)
      #expect(number(message.data[16..<24]) == 0x0102_0304 * 33_333.0)
      #expect(Array(message.data[24...]) == [UInt8](repeating: 4, count: 100))
      page.server.offer(TestPage.frame(0x0102_0305, isKeyframe: true, isShown: false))
      page.server.offer(TestPage.frame(0x0102_0306, isKeyframe: false, isShown: false))
      let hidden = [
        try await client.receive { $0.opcode == 2 }, try await client.receive { $0.opcode == 2 },
      ]
      #expect(hidden.map { $0.data[2] } == [3, 2])
    }
  }

  @Test func aPageStartsAtAKeyframe() async throws {
    try await TestPage.run { page in
      let client = try await page.open()
      for sequence in 1...6 as ClosedRange<UInt32> {
        page.server.offer(TestPage.frame(sequence, isKeyframe: sequence == 3))
      }
      for expected in 3...6 as ClosedRange<UInt8> {
        let message = try await client.receive { $0.opcode == 2 }
        #expect(message.data[4] == expected)
      }
    }
  }

  @Test func aPageWithoutAKeyframeKeepsAskingForOne() async throws {
    try await TestPage.run { page in
      let client = try await page.open()
      let wanted = 3
      var asked = 0
      var sequence: UInt32 = 0
      while asked < wanted {
        // The server paces this loop: each iteration waits for the reply to a command.
        sequence += 1
        page.server.offer(TestPage.frame(sequence, isKeyframe: false))
        try await client.send(TestPage.impossible.json)
        _ = try await client.receive { $0.text.contains(TestPage.error) }
        for await command in page.commands {
          if command == TestPage.impossible { break }
          if case .keyframe("00000000000000bb", _, _) = command { asked += 1 }
        }
      }
    }
  }

  @Test func anEmptyFrameIsNotSent() async throws {
    try await TestPage.run { page in
      let client = try await page.open()
      page.server.offer(TestPage.frame(1, isKeyframe: true))
      page.server.offer(TestPage.frame(2, isKeyframe: false, bytes: 0))
      page.server.offer(TestPage.frame(3, isKeyframe: false))
      for expected in [1, 3] as [UInt8] {
        let message = try await client.receive { $0.opcode == 2 }
        #expect(message.data[4] == expected)
      }
    }
  }

  /// The server sends 20 MB, and buffers less than a tenth of it for a client that never reads.
  @Test func aClientThatNeverReadsCostsNobodyAFrame() async throws {
    try await TestPage.run { page in
      let slow = try await page.open(receiveBuffer: 4096)
      let quick = try await page.open(others: 1)
      for sequence in 0..<400 as Range<UInt32> {
        page.server.offer(TestPage.frame(sequence, isKeyframe: sequence == 0, bytes: 50_000))
        let message = try await quick.receive { $0.opcode == 2 }
        #expect(message.data.count == 50_024)
        #expect(message.data[4] == UInt8(truncatingIfNeeded: sequence))
      }
      await page.server.stop()
      let kept = try await slow.drain()
      #expect(kept < 2_000_000)
    }
  }

  @Test func aPageThatReadsAgainGoesOnAtAKeyframe() async throws {
    try await TestPage.run { page in
      let client = try await page.open(receiveBuffer: 4096)
      let other = try await page.open(others: 1)
      // This fills the socket of the first client: 8 MB exceed all buffers on the path.
      for sequence in 0..<160 as Range<UInt32> {
        page.server.offer(TestPage.frame(sequence, isKeyframe: sequence == 0, bytes: 50_000))
        _ = try await other.receive { $0.opcode == 2 }
      }
      var last: UInt8 = 0
      var received = 0
      // The client reads the buffered frames, in order and without a gap, and then the keyframe.
      reading: while true {
        let message = try await client.receive()
        guard message.opcode == 2 else {
          page.server.offer(TestPage.frame(200, isKeyframe: true))
          continue reading
        }
        if message.data[4] == 200 { break }
        #expect(received == 0 || message.data[4] == last &+ 1)
        last = message.data[4]
        received += 1
      }
      #expect(received < 160)
    }
  }

  private func number(_ bytes: ArraySlice<UInt8>) -> Double {
    Double(bitPattern: bytes.reversed().reduce(0 as UInt64) { $0 << 8 | UInt64($1) })
  }
}
