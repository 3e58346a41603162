import Dispatch
import Muster
import MusterBase
import MusterStore
import Synchronization
import Testing

/// The numbers that completion handlers have recorded.
private final class Notes: Sendable {
  private let notes = Mutex<[Int]>([])

  var all: [Int] { notes.withLock { $0 } }

  func add(_ number: Int) { notes.withLock { $0.append(number) } }
}

private let channel = ChannelID(bytes32(1))

private func keep(_ number: Int) -> Store.Change {
  .keep(entry: [UInt8(number & 0xFF)], id: bytes32(number), channel: channel)
}

struct StoreWriteTests {
  private let fixture = StoreFixture()

  @Test func anAcknowledgedChangeIsThereAlready() async throws {
    let store = try await fixture.store()
    let fixture = fixture
    let (error, count) = await withCheckedContinuation { continuation in
      store.write([keep(1)]) { error in
        continuation.resume(returning: (error, fixture.entryCount))
      }
    }
    #expect(error == nil)
    #expect(count == 1)
  }

  @Test func aWriteWithoutChangesWaitsForNoLaterOne() async throws {
    let store = try await fixture.store()
    try await store.write([keep(1)])
    let lock = try fixture.lockDatabase()
    let late = Notes()
    await withCheckedContinuation { continuation in
      store.write([]) { _ in continuation.resume() }
      store.write([keep(2)]) { _ in late.add(2) }
    }
    #expect(late.all.isEmpty)
    lock.release()
    #expect(try await store.entries(of: channel).count == 2)
  }

  @Test func theOrderIsKept() async throws {
    let store = try await fixture.store()
    let order = Notes()
    for number in 0..<3000 {
      store.write([number % 2 == 0 ? keep(7) : .forget([bytes32(7)], channel: channel)]) { _ in
        order.add(number)
      }
    }
    await store.close()
    #expect(order.all == Array(0..<3000))
    #expect(try await fixture.store().entries(of: channel).isEmpty)
  }

  @Test func manyMaySubmitAtOnce() async throws {
    let store = try await fixture.store()
    let done = Notes()
    await withTaskGroup(of: Void.self) { group in
      for task in 0..<4 {
        group.addTask {
          for number in 0..<200 {
            store.write([keep(task * 1000 + number)]) { error in
              if error == nil { done.add(number) }
            }
          }
        }
      }
    }
    #expect(try await store.entries(of: channel).count == 800)
    #expect(done.all.count == 800)
  }

  /// Waits synchronously: an async function may not call `DispatchSemaphore.wait`.
  private func wait(for semaphore: DispatchSemaphore) { semaphore.wait() }

  @Test func aStalledDiskShedsInsteadOfBlocking() async throws {
    let store = try await fixture.store()
    let (stalled, gate) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    // The completion handler runs on the store's queue and blocks all later writes while it waits.
    store.write([keep(0)]) { _ in
      stalled.signal()
      gate.wait()
    }
    wait(for: stalled)
    let (kept, shed) = (Notes(), Notes())
    let many = Store.capacity + 100
    for number in 1...many {
      store.write([keep(number)]) { ($0 == nil ? kept : shed).add(number) }
    }
    #expect(shed.all.count == 100 && kept.all.isEmpty)
    #expect(store.backlog == Store.Backlog(pending: Store.capacity, shed: 100))
    gate.signal()
    await store.close()
    #expect(kept.all == Array(1...Store.capacity))
    #expect(store.backlog.pending == 0)
  }
}
