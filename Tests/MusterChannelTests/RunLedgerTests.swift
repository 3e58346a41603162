import MusterBase
import MusterChannel
import MusterCrypto
import Testing

struct RunLedgerTests {
  /// The indices of the runs that prove that two are live, of runs that are seen one after the
  /// other at this interval.
  private func proof(_ runs: [UInt64], every interval: Double = 1) -> [Int] {
    var ledger = RunLedger()
    return runs.indices.filter { index in
      ledger.note(
        runs[index], of: testIdentity(1).id, at: seconds(Double(index) * interval))
    }
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

  /// A node that has lost its disk is sent its old presences by each of its neighbours.
  @Test func manyLateEntriesAtOnceAreNoTwins() {
    let runs: [UInt64] = (0..<41).map { $0 % 2 + 1 }
    #expect(proof(runs, every: 0.002).isEmpty)
    #expect(proof(runs, every: 0.25) == [6])
  }

  @Test func runsThatTakeTurnsAreReportedOnce() {
    #expect(proof([1, 2, 1, 2, 1, 2, 1, 2]) == [4])
    #expect(proof([1, 1, 2, 2, 2, 1, 2, 2, 1, 1, 2]) == [8])
  }

  @Test func membersAreCountedForThemselves() {
    var ledger = RunLedger()
    for run in [1, 2, 1, 2] as [UInt64] {
      for member in 1...3 as ClosedRange<UInt64> {
        let isProof = ledger.note(run, of: testIdentity(member).id, at: .zero)
        #expect(!isProof)
      }
    }
  }

  /// Any number of keys costs a bounded table.
  @Test func theTableIsBounded() {
    var ledger = RunLedger()
    for member in 1...400 as ClosedRange<UInt64> {
      let isProof = ledger.note(1, of: testIdentity(member).id, at: .zero)
      #expect(!isProof)
    }
  }
}
