import MusterBase
import MusterChannel
import MusterCrypto
import MusterWire
import Testing

/// Signed entries, and attempts to tamper with them.
struct DocumentEntryTests {
  private let entry = Entries.signed(1, sequence: 7, lamport: 9, Entries.message("hello"))

  private func fault(_ bytes: [UInt8], in channel: ChannelID) -> SignedEntry.Fault? {
    do {
      _ = try SignedEntry.verified(bytes, in: channel)
      return nil
    } catch { return error }
  }

  @Test func aSignedEntryIsVerified() throws {
    let copy = try SignedEntry.verified(entry.bytes, in: testKey.channelID)
    #expect(copy == entry && copy.entry == entry.entry && copy.bytes == entry.bytes)
    #expect(copy.id == SignedEntry.id(of: entry.bytes))
  }

  @Test func everyChangedByteIsFound() {
    for index in entry.bytes.indices {
      var bytes = entry.bytes
      bytes[index] ^= 0x10
      #expect(fault(bytes, in: testKey.channelID) != nil, "byte \(index)")
    }
  }

  @Test func everyLengthButTheRightOneIsFound() {
    for length in 0..<entry.bytes.count {
      #expect(fault(Array(entry.bytes.prefix(length)), in: testKey.channelID) != nil)
    }
    #expect(fault(entry.bytes + [0], in: testKey.channelID) == .forged)
    let long = entry.bytes + [UInt8](repeating: 0, count: Limits.entryBytes)
    #expect(fault(long, in: testKey.channelID) == .malformed)
  }

  @Test func anEntryIsOfOneChannel() {
    #expect(fault(entry.bytes, in: otherKey.channelID) == .forged)
  }

  @Test func aCounterBeyondItsLimitIsMalformed() {
    let limit = Entry.lamportLimit
    let last = Entries.signed(1, sequence: 1, lamport: limit, Entries.message("last"))
    let beyond = Entries.signed(1, sequence: 1, lamport: limit + 1, Entries.message("beyond"))
    #expect(fault(last.bytes, in: testKey.channelID) == nil)
    #expect(fault(beyond.bytes, in: testKey.channelID) == .malformed)
  }

  @Test func theOrderIsByCounterThenAuthorThenSequence() {
    let ids = [1, 2].map { testIdentity($0).id }
    let (low, high): (UInt64, UInt64) = ids[0] < ids[1] ? (1, 2) : (2, 1)
    let sorted = [
      Entries.signed(high, sequence: 9, lamport: 1, Entries.message("a")),
      Entries.signed(low, sequence: 1, lamport: 2, Entries.message("b")),
      Entries.signed(low, sequence: 2, lamport: 2, Entries.message("c")),
      Entries.signed(high, sequence: 0, lamport: 2, Entries.message("d")),
    ]
    #expect(sorted.reversed().sorted() == sorted)
  }
}
