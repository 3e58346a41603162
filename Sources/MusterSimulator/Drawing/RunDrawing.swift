import MusterBase
import MusterChannel
import MusterWire

/// A drawing of a run: time runs to the right, with one lane per node.
struct RunDrawing {
  private static let left = 96.0
  private static let right = 24.0
  private static let top = 86.0
  private static let lane = 46.0
  private static let plot = 1160.0
  private static let legendHeight = 96.0

  private let run: Simulation
  private var svg: SVG
  private var calls: [CallID] = []

  /// The drawing of a finished run.
  static func svg(of run: Simulation) -> String {
    var drawing = RunDrawing(run)
    drawing.draw()
    return drawing.svg.document
  }

  private init(_ run: Simulation) {
    self.run = run
    let lanes = Self.lane * Double(run.nodes.count)
    svg = SVG(
      width: Int(Self.left + Self.plot + Self.right),
      height: Int(Self.top + lanes + 30 + Self.legendHeight))
  }

  private mutating func draw() {
    drawTitle()
    drawBackground()
    for cut in run.trace.cuts { draw(cut) }
    for span in run.trace.spans { draw(span) }
    for mark in run.trace.marks { draw(mark) }
    drawViolation()
    drawLegend()
  }

  // MARK: Layout

  private var seconds: Double { max((run.now - .zero).inSeconds, 0.001) }

  private var bottom: Double { Self.top + Self.lane * Double(run.nodes.count) }

  private func x(_ time: Instant) -> Double {
    Self.left + Self.plot * (time - .zero).inSeconds / seconds
  }

  private func y(_ index: Int) -> Double { Self.top + Self.lane * Double(index) }

  // MARK: Elements

  private mutating func drawTitle() {
    let scenario = run.scenario
    let faults = run.plan.faults.map(\.rawValue).joined(separator: ", ")
    svg.text(16, 26, "Seed \(run.options.seed)", size: 18)
    let outcome = run.violation.map { "fails: \($0)" } ?? "no checker fails"
    svg.text(140, 26, outcome, size: 13, fill: run.violation == nil ? "#1a7f37" : "#cf222e")
    svg.text(
      16, 46,
      "\(run.nodes.count) nodes, \(scenario.kind.rawValue) channel, \(scenario.shape.rawValue) "
        + "network, media \(scenario.hasMedia ? "on" : "off"), "
        + "\(run.messages.count) messages, key \(run.roles.epoch)")
    svg.text(16, 63, "faults: \(faults.isEmpty ? "none" : faults)", fill: "#57606a")
  }

  private mutating func drawBackground() {
    for index in run.nodes.indices {
      let name = run.nodes[index].label
      svg.line(
        Self.left, y(index + 1), Self.left + Self.plot, y(index + 1), stroke: "#d0d7de",
        width: 0.5)
      svg.text(16, y(index) + 22, name, size: 13)
      let isCreated = run.scenario.kind == .created
      let role = isCreated ? run.scenario.roles[index].name : ""
      let extra = index == run.scenario.lawless ? " (lawless)" : ""
      svg.text(16, y(index) + 36, role + extra, size: 9, fill: "#57606a")
    }
    let step = seconds > 120 ? 30 : seconds > 40 ? 5 : 2
    for second in stride(from: 0, through: Int(seconds), by: step) {
      let at = x(.zero + .seconds(second))
      svg.line(at, Self.top, at, bottom, stroke: "#d0d7de", width: 0.5)
      svg.text(at, bottom + 14, "\(second) s", size: 10, fill: "#57606a", anchor: "middle")
    }
    guard run.now > run.healAt else { return }
    let heal = x(run.healAt)
    svg.line(heal, Self.top - 6, heal, bottom, stroke: "#1a7f37", width: 1.5, dashes: "4 3")
    svg.text(heal, Self.top - 9, "no more faults", size: 10, fill: "#1a7f37", anchor: "middle")
  }

  private mutating func draw(_ cut: RunTrace.Cut) {
    let end = cut.to ?? run.now
    for index in cut.indices {
      svg.rectangle(
        x(cut.from), y(index), width: x(end) - x(cut.from), height: Self.lane, fill: "#fbe3b5",
        opacity: 0.7, title: "cut off from the others")
    }
  }

  private mutating func draw(_ span: RunTrace.Span) {
    let (from, to) = (x(span.from), x(span.to ?? run.now))
    let top = y(span.index)
    switch span.kind {
    case .up:
      svg.rectangle(
        from, top + 20, width: to - from, height: 16, fill: "#e3e8ee", title: "process runs")
    case .present:
      svg.rectangle(
        from, top + 24, width: to - from, height: 8, fill: "#afb8c1", title: "in the channel")
    case .call(let id, let term, let isInitiator):
      if !calls.contains(id) { calls.append(id) }
      let number = calls.firstIndex(of: id) ?? 0
      let title = "call \(number + 1), term \(term)\(isInitiator ? ", initiator" : "")"
      svg.rectangle(
        from, top + 20, width: to - from, height: 16, fill: SVG.colour(number),
        opacity: term % 2 == 1 ? 0.95 : 0.55, title: title)
      if isInitiator {
        svg.rectangle(from, top + 18, width: to - from, height: 3, fill: "#24292f", title: title)
      }
      if to - from > 22 {
        svg.text(from + 3, top + 32, "\(number + 1).\(term)", size: 10, fill: "#ffffff")
      }
    case .links(let count):
      let others = max(run.nodes.indices.count { run.paths.has(span.index, $0) }, 1)
      svg.rectangle(
        from, top + 40, width: to - from, height: 4, fill: "#6e7781",
        opacity: min(Double(count) / Double(others), 1), title: "\(count) links of \(others)")
    }
  }

  private mutating func draw(_ mark: RunTrace.Mark) {
    let (at, top) = (x(mark.at), y(mark.index))
    switch mark.kind {
    case .sent: svg.disc(at, top + 13, radius: 3, fill: "#0969da", title: "says something")
    case .shown: svg.rectangle(at - 0.5, top + 9, width: 1, height: 8, fill: "#54aeff")
    case .endsCall: svg.text(at, top + 16, "■", fill: "#24292f", anchor: "middle", title: "ends")
    case .leaves: svg.text(at, top + 16, "↓", anchor: "middle", title: "leaves")
    case .clock: svg.text(at, top + 16, "◷", fill: "#8250df", anchor: "middle", title: "clock")
    case .removed:
      svg.text(at, top + 16, "✕", size: 14, fill: "#cf222e", anchor: "middle", title: "removed")
    case .crash(let loss):
      let text = loss == .nothing ? "†" : loss == .disk ? "†d" : "†i"
      svg.text(at, top + 16, text, size: 13, fill: "#9a3412", anchor: "middle", title: "crash")
    case .granted(let role):
      svg.text(at, top + 8, role.name, size: 8, fill: "#1a7f37", anchor: "middle")
    case .refused(let reason):
      svg.text(
        at, top + 16, "!", size: 13, fill: "#cf222e", anchor: "middle", title: "refused: \(reason)")
    case .key(let number):
      svg.text(at, top + 8, "key \(number)", size: 8, fill: "#8250df", anchor: "middle")
    case .blocked(let receiver):
      svg.text(
        at, top + 16, "⊣", fill: "#9a6700", anchor: "middle",
        title: "nothing passes to n\(receiver)")
    }
  }

  private mutating func drawViolation() {
    guard let violation = run.violation else { return }
    let at = x(violation.at)
    svg.line(at, Self.top - 6, at, bottom, stroke: "#cf222e", width: 2)
    svg.text(
      min(at, Self.left + Self.plot - 4), Self.top - 9, violation.checker, size: 11,
      fill: "#cf222e", anchor: at > Self.plot ? "end" : "middle", title: violation.what)
  }

  private mutating func drawLegend() {
    let signs: [(String, String)] = [
      ("■", "ends its call"), ("†", "crash (d: loses its disk, i: its identity, too)"),
      ("↓", "leaves the channel"), ("✕", "is removed"), ("!", "is refused"),
      ("⊣", "one direction blocked"), ("◷", "clock steps"),
    ]
    var at = Self.left
    let line = bottom + 40
    for (sign, meaning) in signs {
      svg.text(at, line, "\(sign) \(meaning)")
      at += 30 + 6.2 * Double(meaning.count)
    }
    let boxes: [(String, String)] = [
      ("#e3e8ee", "process runs"), ("#afb8c1", "in the channel"),
      ("#0072b2", "in a call (a colour each; number.term; bar on top: initiator)"),
      ("#6e7781", "share of links"), ("#fbe3b5", "cut off"), ("#0969da", "says"),
      ("#54aeff", "is shown"), ("#cf222e", "violation"),
    ]
    at = Self.left
    for (colour, meaning) in boxes {
      svg.rectangle(at, line + 14, width: 12, height: 10, fill: colour)
      svg.text(at + 17, line + 23, meaning)
      at += 40 + 6.2 * Double(meaning.count)
    }
    svg.text(
      Self.left, line + 44,
      "Point at a mark for its meaning. muster simulate --seed "
        + "\(run.options.seed) --svg FILE draws this run again.", fill: "#57606a")
  }
}
