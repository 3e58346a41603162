import MusterSimulator
import Testing

/// The SVG drawing of a run is well-formed for any content.
struct DrawingTests {
  /// Whether every element is closed, and the text contains no unescaped markup.
  private func isWellFormed(_ text: String) -> Bool {
    var open: [Substring] = []
    var rest = Substring(text)
    while let start = rest.firstIndex(of: "<") {
      guard !rest[..<start].contains(">") else { return false }
      rest = rest[rest.index(after: start)...]
      guard let end = rest.firstIndex(of: ">") else { return false }
      let tag = rest[..<end]
      rest = rest[rest.index(after: end)...]
      guard !tag.contains("<") else { return false }
      let name = tag.drop { $0 == "/" }.prefix { $0.isLetter }
      if tag.hasPrefix("/") {
        guard open.popLast() == name else { return false }
      } else if !tag.hasSuffix("/") {
        open.append(name)
      }
    }
    return open.isEmpty && !rest.contains(">")
  }

  @Test func hostileTextStaysText() {
    var svg = SVG(width: 10, height: 10)
    let hostile = "<script>\"&'\u{0}\u{1B}\u{FFFE}</text>"
    svg.text(1, 2, hostile, title: hostile)
    svg.rectangle(0, 0, width: -5, height: .nan, fill: hostile, title: hostile)
    svg.disc(.infinity, 1.005, radius: 2, fill: "#fff")
    svg.line(0, 0, 1.5, -0.25, stroke: "red", dashes: hostile)
    let document = svg.document
    #expect(isWellFormed(document), "\(document)")
    #expect(!document.contains("<script") && !document.contains("\u{1B}"))
    #expect(document.contains("x2=\"1.50\" y2=\"-0.25\""))
    #expect(document.contains("width=\"0\" height=\"0\""))
  }

  @Test(arguments: Tier.seeds(1, of: 6))
  func aRunIsDrawn(seed: UInt64) throws {
    var options = SimulationOptions(seed: seed, media: false)
    let plain = Simulation.run(options)
    #expect(plain.drawing == nil)
    options.draws = true
    let drawn = Simulation.run(options)
    #expect(drawn.digest == plain.digest)
    let frame = try #require(drawn.drawing)
    #expect(isWellFormed(frame))
    #expect(frame.hasPrefix("<svg xmlns=") && frame.hasSuffix("</svg>\n"))
    for position in 0..<drawn.nodes { #expect(frame.contains(">n\(position)</text>")) }
  }
}
