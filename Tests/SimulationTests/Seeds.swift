/// Runs a simulation for each seed, on all cores; the results are in the order of the seeds.
///
/// Seeds are handed out in small chunks, because their costs differ by a factor of a hundred.
func run<Result: Sendable>(
  _ seeds: ClosedRange<UInt64>, _ simulate: @escaping @Sendable (UInt64) -> Result
) async -> [(seed: UInt64, result: Result)] {
  let size: UInt64 = 8
  return await withTaskGroup(of: [(seed: UInt64, result: Result)].self) { group in
    for first in stride(from: seeds.lowerBound, through: seeds.upperBound, by: Int(size)) {
      let chunk = first...min(first + size - 1, seeds.upperBound)
      group.addTask { chunk.map { ($0, simulate($0)) } }
    }
    var results: [(seed: UInt64, result: Result)] = []
    for await chunk in group { results += chunk }
    return results.sorted { $0.seed < $1.seed }
  }
}
