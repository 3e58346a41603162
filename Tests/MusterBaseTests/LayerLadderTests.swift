import MusterBase
import Testing

@Suite struct LayerLadderTests {
  @Test(arguments: [
    ("1920x1080", ["480x270", "960x540", "1920x1080"]),
    ("1280x720", ["320x180", "640x360", "1280x720"]),
    ("640x480", ["320x240", "640x480"]),
    ("640x360", ["320x180", "640x360"]),
    ("352x288", ["352x288"]),
    ("320x180", ["320x180"]),
    ("100x80", ["100x80"]),
    ("721x1283", ["180x320", "360x640", "721x1283"]),
  ])
  func layersAreHalfAndQuarter(source: String, layers: [String]) throws {
    let size = try #require(VideoSize(source))
    #expect(LayerLadder.sizes(for: size).map(\.description) == layers)
  }

  /// A size and its row of the table: max, target, min.
  @Test(arguments: [
    ("320x180", [200, 150, 30]), ("640x360", [700, 500, 150]), ("1280x720", [2500, 2500, 600]),
    ("1920x1080", [5000, 4000, 800]), ("160x90", [200, 150, 30]),
    ("3840x2160", [5000, 4000, 800]),
  ])
  func bitratesAreThoseOfTheTable(text: String, row: [Int]) throws {
    let size = try #require(VideoSize(text))
    #expect(
      LayerLadder.bitrate(for: size)
        == LayerLadder.Bitrate(max: row[0], target: row[1], min: row[2]))
  }

  @Test func bitratesGrowWithSizeAndRate() throws {
    var last = 0
    for height in stride(from: 90, through: 1080, by: 30) {
      let size = VideoSize(width: height * 16 / 9, height: height)
      let bitrate = LayerLadder.bitrate(for: size)
      #expect(bitrate.max >= last && bitrate.min <= bitrate.target)
      #expect(bitrate.target <= bitrate.max)
      last = bitrate.max
    }
    let size = VideoSize(width: 640, height: 360)
    #expect(LayerLadder.bitrate(for: size, framesPerSecond: 60).max == 1050)
    #expect(LayerLadder.bitrate(for: size, framesPerSecond: 15).max == 700)
  }
}
