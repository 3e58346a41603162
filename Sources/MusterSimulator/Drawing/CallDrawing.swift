import MusterBase

/// A drawing of a `CallSimulation`: for each receiver a panel with the rates that arrive over time,
/// the rate of the bottleneck, and the queueing delay.
struct CallDrawing {
  private static let left = 64.0
  private static let right = 150.0
  private static let top = 72.0
  private static let panel = 150.0
  private static let delayPanel = 60.0
  private static let gap = 34.0
  private static let plot = 900.0
  private static let capacityColour = "#8c959f"

  private let run: CallSimulation
  private var svg: SVG

  /// The drawing of a finished run.
  static func svg(of run: CallSimulation) -> String {
    var drawing = CallDrawing(run)
    drawing.draw()
    return drawing.svg.document
  }

  private init(_ run: CallSimulation) {
    self.run = run
    let panels = Double(Self.receivers(of: run).count)
    svg = SVG(
      width: Int(Self.left + Self.plot + Self.right),
      height: Int(Self.top + panels * Self.pitch))
  }

  private static var pitch: Double { panel + delayPanel + gap * 2 }

  /// The participants who receive video.
  private static func receivers(of run: CallSimulation) -> [Int] {
    run.nodes.indices.filter { receiver in
      run.scenario.participants[receiver].watches && !senders(to: receiver, in: run).isEmpty
    }
  }

  private static func senders(to receiver: Int, in run: CallSimulation) -> [Int] {
    run.nodes.indices.filter {
      $0 != receiver && run.scenario.participants[$0].video != nil
    }
  }

  private mutating func draw() {
    svg.text(16, 24, run.scenario.name, size: 18)
    svg.text(16, 42, run.scenario.summary, fill: "#57606a")
    for (row, receiver) in Self.receivers(of: run).enumerated() {
      drawPanel(of: receiver, top: Self.top + Double(row) * Self.pitch)
    }
  }

  private func x(_ seconds: Double) -> Double {
    Self.left + Self.plot * seconds / run.scenario.duration.inSeconds
  }

  private func points(from sender: Int, to receiver: Int) -> [FlowMeter.Point] {
    run.meters[run.meterIndex(from: sender, to: receiver)].points
  }

  private mutating func drawPanel(of receiver: Int, top: Double) {
    let senders = Self.senders(to: receiver, in: run)
    let interval = FlowMeter.interval.inSeconds
    var lines = senders.map { sender in
      points(from: sender, to: receiver).map { Double($0.bytes) * 8 / 1000 / interval }
    }
    var names = senders.map { run.scenario.participants[$0].name }
    if run.scenario.tcp?.to == receiver {
      lines.append(run.tcpPoints.map { Double($0) * 8 / 1000 / interval })
      names.append("TCP")
    }
    let capacity = senders.first.map { rates(from: $0, to: receiver) } ?? []
    let highest = max((lines.flatMap { $0 } + capacity.compactMap { $0 }).max() ?? 0, 100) * 1.05
    let name = run.scenario.participants[receiver].name
    axis(top: top, height: Self.panel, label: "\(name) receives, kbit/s", highest: highest)
    line(
      capacity, top: top, height: Self.panel, highest: highest, colour: Self.capacityColour,
      name: "bottleneck", row: 0)
    for (index, values) in lines.enumerated() {
      line(
        values, top: top, height: Self.panel, highest: highest,
        colour: SVG.colour(index), name: names[index], row: index + 1)
    }
    drawDelays(of: receiver, senders, top: top + Self.panel + Self.gap)
  }

  private mutating func drawDelays(of receiver: Int, _ senders: [Int], top: Double) {
    let delays = senders.map { sender in
      points(from: sender, to: receiver).map { $0.longestQueueing.inSeconds * 1000 }
    }
    let highest = max(delays.flatMap { $0 }.max() ?? 0, 50) * 1.05
    axis(top: top, height: Self.delayPanel, label: "longest queueing, ms", highest: highest)
    for (index, values) in delays.enumerated() {
      line(
        values, top: top, height: Self.delayPanel, highest: highest,
        colour: SVG.colour(index))
    }
  }

  /// The rate of the bottleneck at each point; nil where there is none.
  private func rates(from sender: Int, to receiver: Int) -> [Double?] {
    let count = Int(run.scenario.duration / FlowMeter.interval)
    return (0..<count).map { index in
      run.scenario.rate(from: sender, to: receiver, at: FlowMeter.interval * index)
        .map(Double.init)
    }
  }

  private mutating func axis(top: Double, height: Double, label: String, highest: Double) {
    let bottom = top + height
    svg.line(Self.left, bottom, Self.left + Self.plot, bottom, stroke: "#d0d7de")
    svg.line(Self.left, top, Self.left, bottom, stroke: "#d0d7de")
    svg.text(Self.left, top - 5, label, fill: "#57606a")
    svg.text(Self.left - 6, top + 9, String(Int(highest)), size: 10, anchor: "end")
    svg.text(Self.left - 6, bottom, "0", size: 10, anchor: "end")
    for second in stride(from: 0, through: Int(run.scenario.duration.inSeconds), by: 10) {
      svg.line(x(Double(second)), bottom, x(Double(second)), bottom + 3, stroke: "#8c959f")
      svg.text(x(Double(second)), bottom + 13, "\(second) s", size: 9, anchor: "middle")
    }
  }

  /// A line through values at the interval of `FlowMeter`, with its name at the right; it has gaps
  /// where there is no value.
  private mutating func line(
    _ values: [Double?], top: Double, height: Double, highest: Double, colour: String,
    name: String = "", row: Int = 0
  ) {
    let interval = FlowMeter.interval.inSeconds
    for stretch in values.indices.split(whereSeparator: { values[$0] == nil }) {
      let points = stretch.map { index in
        (x: x(Double(index) * interval), y: top + height * (1 - (values[index] ?? 0) / highest))
      }
      svg.polyline(points, stroke: colour)
    }
    guard !name.isEmpty, values.contains(where: { $0 != nil }) else { return }
    let right = Self.left + Self.plot + 10
    svg.text(right, top + 12 + Double(row) * 14, name, size: 11, fill: colour)
  }
}
