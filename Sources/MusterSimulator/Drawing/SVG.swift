/// An SVG document under construction; text is escaped.
public struct SVG: Sendable {
  /// The width in user units, one CSS pixel each; x grows to the right from 0.
  public let width: Int
  /// The height in user units; y grows downwards from 0.
  public let height: Int
  private var body = ""

  private static let colours = [
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c6d31", "#6b4c9a",
  ]

  /// The colour of the thing with this number from 0. The first six are distinct for colour-blind
  /// readers (Okabe and Ito), the ninth is the first again.
  static func colour(_ number: Int) -> String { colours[number % colours.count] }

  /// An empty drawing, white when rendered.
  public init(width: Int, height: Int) {
    self.width = width
    self.height = height
  }

  /// Adds a rectangle; a non-empty `title` becomes its tooltip.
  public mutating func rectangle(
    _ x: Double, _ y: Double, width: Double, height: Double, fill: String, opacity: Double = 1,
    title: String = ""
  ) {
    let shape =
      "<rect x=\"\(number(x))\" y=\"\(number(y))\" width=\"\(number(max(width, 0)))\" "
      + "height=\"\(number(max(height, 0)))\" fill=\"\(escaped(fill))\""
    element(shape, "rect", opacity: opacity, title: title)
  }

  /// Adds a disc; a non-empty `title` becomes its tooltip.
  public mutating func disc(
    _ x: Double, _ y: Double, radius: Double, fill: String, title: String = ""
  ) {
    let shape =
      "<circle cx=\"\(number(x))\" cy=\"\(number(y))\" r=\"\(number(radius))\" "
      + "fill=\"\(escaped(fill))\""
    element(shape, "circle", opacity: 1, title: title)
  }

  /// Adds a straight line; `dashes` is the SVG `stroke-dasharray`, empty for a solid line.
  public mutating func line(
    _ x1: Double, _ y1: Double, _ x2: Double, _ y2: Double, stroke: String, width: Double = 1,
    dashes: String = ""
  ) {
    body +=
      "<line x1=\"\(number(x1))\" y1=\"\(number(y1))\" x2=\"\(number(x2))\" y2=\"\(number(y2))\" "
      + "stroke=\"\(escaped(stroke))\" stroke-width=\"\(number(width))\""
    if !dashes.isEmpty { body += " stroke-dasharray=\"\(escaped(dashes))\"" }
    body += "/>\n"
  }

  /// Adds a line through all points.
  mutating func polyline(_ points: [(x: Double, y: Double)], stroke: String, width: Double = 1) {
    let list = points.map { "\(number($0.x)),\(number($0.y))" }.joined(separator: " ")
    body +=
      "<polyline points=\"\(list)\" fill=\"none\" stroke=\"\(escaped(stroke))\" "
      + "stroke-width=\"\(number(width))\"/>\n"
  }

  /// Adds one line of text; `x` and `y` are the position of its `anchor` (start, middle or end) on
  /// the baseline.
  public mutating func text(
    _ x: Double, _ y: Double, _ text: String, size: Double = 11, fill: String = "#24292f",
    anchor: String = "start", title: String = ""
  ) {
    body +=
      "<text x=\"\(number(x))\" y=\"\(number(y))\" font-size=\"\(number(size))\" "
      + "fill=\"\(escaped(fill))\" text-anchor=\"\(escaped(anchor))\">"
    if !title.isEmpty { body += "<title>\(escaped(title))</title>" }
    body += "\(escaped(text))</text>\n"
  }

  /// The complete document, without external references.
  public var document: String {
    "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"\(width)\" height=\"\(height)\" "
      + "viewBox=\"0 0 \(width) \(height)\" font-family=\"sans-serif\">\n"
      + "<rect width=\"\(width)\" height=\"\(height)\" fill=\"#ffffff\"/>\n" + body + "</svg>\n"
  }

  private mutating func element(
    _ start: String, _ name: String, opacity: Double, title: String
  ) {
    body += start
    if opacity < 1 { body += " opacity=\"\(number(opacity))\"" }
    body += title.isEmpty ? "/>\n" : "><title>\(escaped(title))</title></\(name)>\n"
  }

  /// A coordinate with at most two decimals.
  private func number(_ value: Double) -> String {
    guard value.isFinite, value.magnitude < 1e12 else { return "0" }
    let hundredths = Int64((value * 100 + (value < 0 ? -0.5 : 0.5)))
    let sign = hundredths < 0 ? "-" : ""
    let (whole, rest) = hundredths.magnitude.quotientAndRemainder(dividingBy: 100)
    guard rest > 0 else { return "\(sign)\(whole)" }
    return "\(sign)\(whole)." + (rest < 10 ? "0" : "") + String(rest)
  }

  private func escaped(_ text: String) -> String {
    var result = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "&": result += "&amp;"
      case "<": result += "&lt;"
      case ">": result += "&gt;"
      case "\"": result += "&quot;"
      case "'": result += "&#39;"
      // XML 1.0 (section 2.2) forbids these control characters, except carriage return, even if
      // escaped.
      case _ where scalar.value < 0x20 && scalar != "\t" && scalar != "\n": result += " "
      case _ where (0x7F..<0xA0).contains(scalar.value) || scalar.value & 0xFFFE == 0xFFFE:
        result += " "
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result
  }
}
