/// The last so many ids that were put in, for telling whether one is among them.
struct RecentIDs: Sendable {
  let capacity: Int
  private var sorted: [UInt64] = []
  private var byAge: [UInt64] = []

  init(capacity: Int) { self.capacity = capacity }

  func contains(_ id: UInt64) -> Bool {
    let place = place(of: id)
    return place < sorted.count && sorted[place] == id
  }

  mutating func insert(_ id: UInt64) {
    let place = place(of: id)
    guard place == sorted.count || sorted[place] != id else { return }
    sorted.insert(id, at: place)
    byAge.append(id)
    if byAge.count > capacity { sorted.remove(at: self.place(of: byAge.removeFirst())) }
  }

  private func place(of id: UInt64) -> Int {
    var (low, high) = (0, sorted.count)
    while low < high {
      let middle = (low + high) / 2
      if sorted[middle] < id { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
