import MusterBase
import MusterCrypto
import MusterView
import MusterWire
import Testing

/// The numbers of the page's tiles, of which there are 255.
struct PageTilesTests {
  private let tiles = PageTiles()
  private let streams = StreamID.all

  private func member(_ number: Int) -> NodeID {
    var entropy = Entropy.seeded(UInt64(number))
    return NodeID(Bytes32(entropy.bytes(32)) ?? .zero)
  }

  @Test func aStreamKeepsItsTile() {
    let first = tiles.tile(of: .camera, of: member(1), in: "lab")
    #expect(first != nil && first != 0)
    #expect(tiles.tile(of: .camera, of: member(1), in: "lab") == first)
    #expect(tiles.tile(of: .camera, of: member(1), in: "other") != first)
    #expect(first.flatMap { tiles.owner(of: $0) }?.member == member(1))
    #expect(tiles.owner(of: 0) == nil && tiles.owner(of: 255) == nil)
  }

  /// However many streams the members of a full channel offer, each one's camera has a tile.
  @Test func noCameraLacksATile() {
    for number in 0..<63 {
      for stream in streams { _ = tiles.tile(of: stream, of: member(number), in: "lab") }
    }
    #expect(tiles.tile(of: .camera, of: member(63), in: "lab") != nil)
    #expect(tiles.tile(of: .screen, of: member(63), in: "lab") != nil)
    #expect(tiles.tile(of: streams[2], of: member(63), in: "lab") == nil)
  }

  @Test func aMemberThatIsGoneLeavesItsTiles() {
    let others = (1...66).map(member)
    for other in others {
      for stream in streams { _ = tiles.tile(of: stream, of: other, in: "lab") }
    }
    let kept = tiles.tile(of: .camera, of: others[0], in: "lab")
    tiles.keep([("lab", [others[0]])])
    for number in 100..<163 {
      #expect(tiles.tile(of: .camera, of: member(number), in: "lab") != nil)
    }
    #expect(tiles.tile(of: .camera, of: others[0], in: "lab") == kept)
  }

  /// The page may still show the former stream for a moment.
  @Test func aTileIsNotReusedAtOnce() {
    var seen: [UInt8] = []
    for number in 0..<200 {
      guard let tile = tiles.tile(of: .camera, of: member(number), in: "lab") else { break }
      #expect(!seen.contains(tile))
      seen.append(tile)
      tiles.keep([])
    }
    #expect(seen.count == 200)
  }
}
