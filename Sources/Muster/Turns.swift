/// The turns of an actor's operations that wait in between, and must not overlap: each begins once
/// the one before it has ended.
struct Turns {
  private var isTaken = false
  private var waiting: [CheckedContinuation<Void, Never>] = []

  /// Resumes `operation` when it is its turn, in the order of the calls.
  mutating func take(_ operation: CheckedContinuation<Void, Never>) {
    guard isTaken else {
      isTaken = true
      return operation.resume()
    }
    waiting.append(operation)
  }

  /// Ends the turn under way.
  mutating func end() {
    guard !waiting.isEmpty else { return isTaken = false }
    waiting.removeFirst().resume()
  }
}
