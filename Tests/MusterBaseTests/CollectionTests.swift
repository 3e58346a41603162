import MusterBase
import Testing

/// Compares the table with a sorted list of pairs over random operations.
@Test(arguments: 0..<20)
func aTableBehavesLikeASortedListOfPairs(seed: Int) {
  var random = PRNG(seed: UInt64(seed))
  var table = PeerTable<Int, Int>()
  var model: [(key: Int, value: Int)] = []
  for step in 0..<2_000 {
    let key = random.below(40)
    let position = model.firstIndex { $0.key == key }
    switch random.below(4) {
    case 0, 1:
      table[key] = step
      if let position { model[position].value = step } else { model.append((key, step)) }
    case 2:
      table[key] = nil
      if let position { model.remove(at: position) }
    default:
      let old = table.update(key) { value in
        defer { value += 1 }
        return value
      }
      #expect(old == position.map { model[$0].value })
      if let position { model[position].value += 1 }
    }
    model.sort { $0.key < $1.key }
    #expect(table.keys == model.map(\.key))
    #expect(table.map(\.value) == model.map(\.value))
    #expect(table.count == model.count && table.isEmpty == model.isEmpty)
    #expect(table.index(of: key) == model.firstIndex { $0.key == key })
  }
}

@Test func valuesChangeInPlace() throws {
  var table = PeerTable<String, [Int]>()
  table["b"] = [1]
  table["a"] = []
  let position = try #require(table.index(of: "b"))
  table[at: position].append(2)
  #expect(table["b"] == [1, 2])
  #expect(table["c"] == nil)
  #expect(table.update("c") { $0.append(1) } == nil)
}

/// Compares the ring buffer with an array over random operations.
@Test(arguments: [1, 2, 3, 7, 64])
func aRingBehavesLikeABoundedArray(capacity: Int) {
  var random = PRNG(seed: UInt64(capacity))
  var ring = RingBuffer<Int>(capacity: capacity)
  var model: [Int] = []
  for step in 0..<2_000 {
    switch random.below(5) {
    case 0, 1, 2:
      let dropped = model.count == capacity ? model.removeFirst() : nil
      #expect(ring.append(step) == dropped)
      model.append(step)
    case 3:
      #expect(ring.popFirst() == (model.isEmpty ? nil : model.removeFirst()))
    default:
      guard !model.isEmpty else { continue }
      let position = random.below(model.count)
      ring[position] = -step
      model[position] = -step
    }
    #expect(ring.first == model.first && ring.last == model.last)
    #expect(ring.count == model.count && ring.isFull == (model.count == capacity))
    #expect((0..<ring.count).map { ring[$0] } == model)
  }
  ring.removeAll()
  #expect(ring.isEmpty && ring.first == nil && ring.capacity == capacity)
}
