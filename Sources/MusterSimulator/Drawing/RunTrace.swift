import MusterBase
import MusterChannel
import MusterCore
import MusterCrypto
import MusterDiscovery
import MusterWire

/// The recorded content of a run's drawing; empty unless a drawing is requested.
struct RunTrace: Sendable {
  /// A state that a lane shows over an interval; each row of a lane shows one state at a time.
  struct Span: Sendable {
    enum Kind: Equatable, Sendable {
      case up, present
      case call(CallID, term: UInt32, isInitiator: Bool)
      /// The number of links of the node.
      case links(Int)
    }

    let index: Int
    let row: Int
    let kind: Kind
    let from: Instant
    var to: Instant?
  }

  struct Mark: Sendable {
    enum Kind: Sendable {
      case sent, shown, endsCall, leaves, clock, removed
      case crash(Simulation.Loss)
      case granted(Role)
      case refused(Refusal)
      case key(UInt32)
      case blocked(to: Int)
    }

    let index: Int
    let at: Instant
    let kind: Kind
  }

  /// A partition that cuts some hosts off from all other hosts.
  struct Cut: Sendable {
    let indices: [Int]
    let from: Instant
    var to: Instant?
  }

  private static let rows = 4
  /// The maximum number of marks and of spans, which bounds the size of a long run's drawing.
  static let markLimit = 20_000

  let isOn: Bool
  private(set) var spans: [Span] = []
  private(set) var marks: [Mark] = []
  private(set) var cuts: [Cut] = []
  /// The index in `spans` of the open span of each row of each lane; nil for none.
  private var open: [Int?]

  init(isOn: Bool, nodes: Int) {
    self.isOn = isOn
    open = Array(repeating: nil, count: nodes * Self.rows)
  }

  mutating func mark(_ kind: Mark.Kind, at position: Int, _ now: Instant) {
    guard isOn, marks.count < Self.markLimit else { return }
    marks.append(Mark(index: position, at: now, kind: kind))
  }

  mutating func cut(_ positions: [Int], at now: Instant) {
    guard isOn else { return }
    cuts.append(Cut(indices: positions, from: now, to: nil))
  }

  mutating func healed(at now: Instant) {
    guard isOn, let last = cuts.indices.last, cuts[last].to == nil else { return }
    cuts[last].to = now
  }

  /// Records the current state of a node: ends spans whose state has changed, and begins new ones.
  mutating func sample(_ simulated: SimulatedNode, in channel: ChannelID, at now: Instant) {
    guard isOn else { return }
    let position = simulated.index
    let process = simulated.process
    set(process == nil ? nil : .up, row: 0, of: position, at: now)
    set(simulated.isPresent ? .present : nil, row: 1, of: position, at: now)
    var call: Span.Kind?
    if let process, process.node.isInCall(channel),
      let info = process.node.call(in: channel)?.info
    {
      call = .call(info.id, term: info.term, isInitiator: info.initiator == process.node.id)
    }
    set(call, row: 2, of: position, at: now)
    set(process.map { .links($0.node.statistics(at: now).count) }, row: 3, of: position, at: now)
  }

  private mutating func set(_ kind: Span.Kind?, row: Int, of position: Int, at now: Instant) {
    let slot = position * Self.rows + row
    if let index = open[slot] {
      guard spans[index].kind != kind else { return }
      spans[index].to = now
      open[slot] = nil
    }
    guard let kind, spans.count < Self.markLimit else { return }
    open[slot] = spans.count
    spans.append(Span(index: position, row: row, kind: kind, from: now, to: nil))
  }
}
