import Dispatch
import Foundation
import Glibc
import Muster
import MusterBase
import MusterStore
import Testing

/// Kills processes that write to a store at random times, including at their start.
struct StoreKillTests {
  /// The number of kills; `MUSTER_KILLS=200` is the full test.
  private static let kills =
    ProcessInfo.processInfo.environment["MUSTER_KILLS"].flatMap { Int($0) } ?? 25
  private static let channel = ChannelID(bytes32(1))
  /// Each transaction keeps this many entries, and forgets those of the one `window` before it.
  private static let width = 3
  private static let window = 4

  @Test(.timeLimit(.minutes(10)))
  func acknowledgedChangesSurviveEveryKill() async throws {
    let fixture = StoreFixture()
    let path = fixture.path
    let acknowledged = path + ".acknowledged"
    var prng = PRNG(seed: 9)
    var last = 0
    var identity: String?
    for kill in 1...Self.kills {
      let delay = UInt32(prng.below(60_000))
      // Half of the processes are killed early, maybe before they have opened the store.
      let lives = kill.isMultiple(of: 2)
      let first = last + 1
      await #expect(processExitsWith: .signal(SIGKILL)) {
        [
          path = path as String, acknowledged = acknowledged as String, first = first as Int,
          delay = delay as UInt32, lives = lives as Bool
        ] in
        try await Self.write(
          to: path, from: first, telling: acknowledged, killedAfter: delay, afterFirstWrite: lives)
      }
      let lines = try? String(contentsOfFile: acknowledged, encoding: .utf8)
      let reportedLines = (lines ?? "").split(separator: "\n")
      let promised = reportedLines.compactMap { Int($0) }.last ?? last
      let store = try await fixture.store()
      last = try await Self.lastTransaction(in: store)
      #expect(last >= promised, "kill \(kill) after \(delay) µs lost what was acknowledged")
      if let known = identity ?? reportedLines.first(where: { Int($0) == nil }).map(String.init) {
        identity = known
        let directory = try #require(try DataDirectory.open(path))
        #expect(try directory.identity().id.key.hex == "\(known)", "kill \(kill)")
      }
    }
    try? FileManager.default.removeItem(atPath: acknowledged)
    #expect(last >= Self.kills / 2)
  }

  /// Checks that every transaction is there as a whole or not at all.
  private static func lastTransaction(in store: Store) async throws -> Int {
    let entries = try await store.entries(of: channel)
    let last = try await Int(store.channel(channel)?.keys.last?.number ?? 0)
    let kept = max(1, last - window + 1)..<(last + 1)
    let wanted = kept.flatMap { transaction in
      (0..<width).map { entry(transaction, $0) }
    }
    #expect(Set(entries) == Set(wanted), "transaction \(last) is there in part")
    #expect(entries.count == wanted.count)
    let identities = try await store.identities(of: channel)
    #expect(identities.first?.lastSeen ?? 0 == UInt64(last))
    return last
  }

  /// The sizes differ widely, so that the log is often written back.
  private static func entry(_ transaction: Int, _ index: Int) -> [UInt8] {
    bytes32(transaction, index).bytes
      + [UInt8](repeating: UInt8(transaction & 0xFF), count: (transaction * 7919) % 9000)
  }

  private static func changes(_ transaction: Int) throws -> [Store.Change] {
    var changes: [Store.Change] = (0..<width).map {
      .keep(entry: entry(transaction, $0), id: bytes32(transaction, $0), channel: channel)
    }
    changes.append(
      .forget((0..<width).map { bytes32(transaction - window, $0) }, channel: channel))
    changes.append(.key(try #require(epochKey(UInt32(transaction))), channel: channel))
    let seen = UInt64(transaction)
    changes.append(.identity(known("anna", 1, seen: 0...seen), channel: channel))
    return changes
  }

  /// Writes until it is killed `delay` microseconds after its start, or after its first write. A
  /// transaction is logged only after the store acknowledged it.
  private static func write(
    to path: String, from first: Int, telling acknowledged: String, killedAfter delay: UInt32,
    afterFirstWrite lives: Bool
  ) async throws {
    let die: @Sendable () -> Void = {
      Thread.detachNewThread {
        usleep(delay)
        kill(getpid(), SIGKILL)
      }
    }
    if !lives { die() }
    let log = open(acknowledged, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    let report: @Sendable (String) -> Void = { text in
      let line = Array((text + "\n").utf8)
      _ = Glibc.write(log, line, line.count)
    }
    let directory = try #require(try DataDirectory.open(path))
    report(try directory.identity().id.key.hex)
    let store = try await Store.open(directory)
    if first == 1 {
      try await store.write([.channel(StoredChannel(id: channel, name: "lab", createdAt: 1))])
    }
    try write(to: store, from: first) { transaction, error in
      if error == nil { report("\(transaction)") }
      if lives, transaction == first { die() }
    }
  }

  /// Writes with up to 12 transactions in flight; does not return.
  private static func write(
    to store: Store, from first: Int, _ done: @escaping @Sendable (Int, MusterError?) -> Void
  ) throws {
    let waiting = DispatchSemaphore(value: 12)
    for transaction in first...Int.max {
      waiting.wait()
      store.write(try changes(transaction)) { error in
        done(transaction, error)
        waiting.signal()
      }
    }
  }
}
