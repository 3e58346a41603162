import MusterBase
import MusterChannel
import MusterCrypto
import Testing

struct RunLedgerTests {
  /// The index of the run that proves that two are live; nil for none.
  private func proof(_ runs: [UInt64]) -> [Int] {
    var ledger = RunLedger()
    return runs.indices.filter { ledger.note(runs[$0], of: testIdentity(1).id) }
  }

  @Test func restartsAreNoTwins() {
    #expect(proof([1, 2, 3, 4, 5, 6, 7, 8]).isEmpty)
    #expect(proof([1, 1, 1, 2, 2, 2]).isEmpty)
  }

  /// An entry of an ended run arrives late, and again over another path.
  @Test func lateEntriesAreNoTwins() {
    #expect(proof([1, 2, 1, 2]).isEmpty)
    #expect(proof([1, 2, 1, 2, 3, 4]).isEmpty)
  }

  @Test func runsThatTakeTurnsAreReportedOnce() {
    #expect(proof([1, 2, 1, 2, 1, 2, 1, 2]) == [4])
    #expect(proof([1, 1, 2, 2, 2, 1, 2, 2, 1, 1, 2]) == [8])
  }

  @Test func membersAreCountedForThemselves() {
    var ledger = RunLedger()
    for run in [1, 2, 1, 2] as [UInt64] {
      for member in 1...3 as ClosedRange<UInt64> {
        let isProof = ledger.note(run, of: testIdentity(member).id)
        #expect(!isProof)
      }
    }
  }

  /// Any number of keys costs a bounded table.
  @Test func theTableIsBounded() {
    var ledger = RunLedger()
    for member in 1...400 as ClosedRange<UInt64> {
      let isProof = ledger.note(1, of: testIdentity(member).id)
      #expect(!isProof)
    }
  }
}
