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

struct StoreWriterTests {
  private let fixture = StoreFixture()

  @Test func anAcknowledgedChangeIsThereAlready() async throws {
    let store = try fixture.store()
    let writer = StoreWriter(store)
    let error = await withCheckedContinuation { continuation in
      writer.write([keep(1)]) { error in
        #expect((try? store.entries(of: channel)) == [[1]])
        continuation.resume(returning: error)
      }
    }
    #expect(error == nil)
  }

  @Test func theOrderIsKept() async throws {
    let writer = StoreWriter(try fixture.store())
    let order = Notes()
    for number in 0..<3000 {
      writer.write([number % 2 == 0 ? keep(7) : .forget([bytes32(7)], channel: channel)]) { _ in
        order.add(number)
      }
    }
    await writer.close()
    #expect(order.all == Array(0..<3000))
    #expect(try fixture.store().entries(of: channel).isEmpty)
  }

  @Test func manyMaySubmitAtOnce() async throws {
    let store = try fixture.store()
    let writer = StoreWriter(store)
    let done = Notes()
    await withTaskGroup(of: Void.self) { group in
      for task in 0..<4 {
        group.addTask {
          for number in 0..<200 {
            writer.write([keep(task * 1000 + number)]) { error in
              if error == nil { done.add(number) }
            }
          }
        }
      }
    }
    await writer.close()
    #expect(done.all.count == 800)
    #expect(try store.entries(of: channel).count == 800)
  }

  /// Waits synchronously: an async function may not call `DispatchSemaphore.wait`.
  private func wait(for semaphore: DispatchSemaphore) { semaphore.wait() }

  @Test func aStalledDiskShedsInsteadOfBlocking() async throws {
    let store = try fixture.store()
    let writer = StoreWriter(store)
    let (stalled, gate) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    // The completion handler runs on the writer's queue and blocks all later writes while it waits.
    writer.write([keep(0)]) { _ in
      stalled.signal()
      gate.wait()
    }
    wait(for: stalled)
    let (kept, shed) = (Notes(), Notes())
    let many = StoreWriter.capacity + 100
    for number in 1...many {
      writer.write([keep(number)]) { ($0 == nil ? kept : shed).add(number) }
    }
    #expect(shed.all.count == 100 && kept.all.isEmpty)
    #expect(writer.backlog == StoreWriter.Backlog(pending: StoreWriter.capacity, shed: 100))
    gate.signal()
    await writer.close()
    #expect(kept.all == Array(1...StoreWriter.capacity))
    #expect(writer.backlog.pending == 0)
  }
}
