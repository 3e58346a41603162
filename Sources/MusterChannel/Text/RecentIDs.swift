/// A set of at most `capacity` ids, which evicts the id inserted first.
struct RecentIDs: Sendable {
  let capacity: Int
  private var sorted: [UInt64] = []
  private var byAge: [UInt64] = []

  init(capacity: Int) { self.capacity = capacity }

  func contains(_ id: UInt64) -> Bool {
    let index = index(of: id)
    return index < sorted.count && sorted[index] == id
  }

  mutating func insert(_ id: UInt64) {
    let index = index(of: id)
    guard index == sorted.count || sorted[index] != id else { return }
    sorted.insert(id, at: index)
    byAge.append(id)
    if byAge.count > capacity { sorted.remove(at: self.index(of: byAge.removeFirst())) }
  }

  private func index(of id: UInt64) -> Int {
    var (low, high) = (0, sorted.count)
    while low < high {
      let middle = (low + high) / 2
      if sorted[middle] < id { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
