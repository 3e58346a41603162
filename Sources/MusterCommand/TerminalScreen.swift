import Muster
import MusterBase
import MusterChannel
import MusterWire

/// The terminal's display of the roster, a log of events, and the input line.
struct TerminalScreen {
  /// The id of this node, shown as "you" in the log.
  private let own: NodeID
  private var log: [String] = []
  /// The most recent warnings, at most `warningsKept`, displayed above the log.
  private var warnings: [String] = []
  private var statistics: Statistics?
  /// The names of current and former members, for messages of members that have left.
  private var names = PeerTable<NodeID, String>()
  /// The index of the channel that key commands apply to.
  var activeChannel = 0
  /// The editor of the input line; nil while no message is being written.
  var editor: LineEditor?
  /// The question that the user is to answer before a call ends; nil for none.
  var question: LeaveQuestion?

  /// The maximum number of log lines kept; the terminal's height limits the number displayed.
  private static let linesKept = 200
  private static let warningsKept = 3
  /// The minimum number of log lines displayed beside a long roster.
  private static let linesShown = 6

  init(own: NodeID) { self.own = own }

  // MARK: Events

  mutating func note(_ line: String) {
    log = (log + [line]).suffix(Self.linesKept)
  }

  mutating func note(_ event: Event) {
    switch event {
    case .memberJoined(_, let member):
      remember(member)
      note("\(member.name) is here")
    case .memberUpdated(_, let member): remember(member)
    case .memberLeft(_, let member, let reason):
      note("\(member.name) has gone (\(reason.rawValue))")
    case .callStarted(let channel, let call):
      note("a call is on in \(channel), led by \(name(call.info.initiator))")
    case .callHandedOver(let channel, let call):
      let leads = call.info.initiator == own ? "you lead" : "\(name(call.info.initiator)) leads"
      note("\(leads) the call in \(channel) now: whoever did has gone")
    case .callEnded(let channel, let call, CallEndReason.ended):
      note("\(name(call.initiator)) ended the call in \(channel) for all")
    case .callEnded(let channel, _, let reason): note("the call in \(channel) is over (\(reason))")
    case .callModerated(_, let moderation, let author):
      note(moderation.sentence(by: author, for: own, name: name))
    case .message(let channel, let message): note(line(of: message, in: channel))
    case .warning(let error): warnings = (warnings + ["\(error)"]).suffix(Self.warningsKept)
    case .error(let error, _): note("error: \(error)")
    case .statistics(let statistics): self.statistics = statistics
    default: break
    }
  }

  private mutating func remember(_ member: Member) {
    if names.count >= Limits.authors { names = PeerTable() }
    names[member.id] = member.name
  }

  private func name(_ id: NodeID) -> String { id == own ? "you" : names[id] ?? id.short }

  private func line(of message: TextMessage, in channel: String) -> String {
    let receiver = message.to.map { " to \(name($0))" } ?? " in \(channel)"
    let time = Clocks.timeOfDay(milliseconds: message.sentAt)
    return "\(time) \(name(message.from))\(receiver): \(message.text)"
  }

  // MARK: Drawing

  /// The lines of the whole screen, at most as many as the terminal has rows.
  func lines(
    _ channels: [MusterNode.ChannelView], page: String?, size: (columns: Int, rows: Int)
  ) -> [String] {
    let width = max(20, size.columns - 4)
    let standing = warnings.flatMap { warning in
      Style.wrapped("warning: \(warning)", columns: width).map { "  \(Style.loud($0))" }
    }
    let happened = log.flatMap { Style.wrapped($0, columns: width) }.map { "  \($0)" }
    let footer = [""] + footer(channels, width: width)
    let room = max(0, size.rows - standing.count - footer.count - 1)
    var top = channels.enumerated().flatMap { index, channel in
      roster(
        of: channel, isActive: channels.count > 1 && index == activeChannel, width: width)
    }
    if let page { top += ["", "  Page  \(page)"] }
    let topRoom = max(1, room - min(Self.linesShown, happened.count))
    if top.count > topRoom {
      let hidden = top.count - topRoom + 1
      top = top.prefix(topRoom - 1) + [Style.dim("  … and \(hidden) more lines")]
    }
    return top + [""] + standing + happened.suffix(max(0, room - top.count)) + footer
  }

  private func footer(_ channels: [MusterNode.ChannelView], width: Int) -> [String] {
    let active = channels.indices.contains(activeChannel) ? channels[activeChannel] : nil
    if let editor {
      let prompt = "  to all in \(active?.name ?? ""): "
      let room = max(10, width - Style.columns(prompt))
      return [
        prompt + Style.tail(editor.shown(cursor: "▏"), columns: room),
        Style.dim("  [Enter] sends   [Esc] leaves it"),
      ]
    }
    if let question, case let calls = question.calls(in: channels),
      !calls.isEmpty
    {
      let (statement, keys) = question.lines(for: calls)
      let shown = Style.wrapped(statement, columns: width).map { "  \(Style.loud($0))" }
      return shown + Self.rows(of: keys, width: width).map { "  \($0)" }
    }
    let call =
      active?.isInCall ?? false
      ? "leave the call" : active?.call == nil ? "start a call" : "join the call"
    var keys = ["[c] \(call)", "[t] write", "[m] microphone", "[v] camera"]
    if active?.own.stream(.screen) != nil { keys.append("[s] share") }
    if channels.count > 1 { keys.append("[Tab] next channel") }
    keys.append("[q] quit")
    return Self.rows(of: keys, width: width).map { Style.dim("  \($0)") }
  }

  /// The keys side by side, in as many rows as they take.
  private static func rows(of keys: [String], width: Int) -> [String] {
    keys.reduce(into: [String]()) { rows, key in
      if let row = rows.last, Style.columns(row) + 3 + Style.columns(key) <= width {
        rows[rows.endIndex - 1] = "\(row)   \(key)"
      } else {
        rows.append(key)
      }
    }
  }

  private func roster(
    of channel: MusterNode.ChannelView, isActive: Bool, width: Int
  ) -> [String] {
    var state = "  no call"
    if let call = channel.call {
      let count = call.participants.count
      let since = Clocks.timeOfDay(milliseconds: call.info.startedAt)
      state = "  call ongoing since \(since), \(count) "
      state += count == 1 ? "participant" : "participants"
    }
    let title = "\(isActive ? "▸" : " ") \(Style.bold(channel.name))\(state)"
    // On a line of its own if there is no room for all of it: a shortened id cannot be typed.
    let kind = "  \(channel.kind) channel \(channel.id)"
    let isBeside = Style.columns(channel.name + state + kind) <= width
    var lines = [""] + (isBeside ? [title + Style.dim(kind)] : [title, Style.dim(kind)]) + [""]
    lines.append(line(for: channel.own, in: channel, quality: "you"))
    for member in channel.members.sorted(by: { ($0.name, $0.id) < ($1.name, $1.id) }) {
      let peer = statistics?.peers.first {
        $0.member == member.id && $0.channel == channel.name
      }
      lines.append(line(for: member, in: channel, quality: quality(peer, in: channel)))
    }
    if channel.cpuStep > 0 {
      lines.append(Style.loud("  this computer is busy: less video is sent and received"))
    }
    if channel.members.isEmpty { lines.append(Style.dim("  nobody else yet")) }
    for pair in statistics?.relayed ?? [] where pair.channel == channel.name {
      let names = pair.members.map { name(of: $0, in: channel) }
      let rate = Int(pair.kilobitsPerSecond)
      lines.append(
        Style.dim("  passing on for \(names.joined(separator: " and ")): \(rate) kbit/s"))
    }
    return lines
  }

  private func line(
    for member: Member, in channel: MusterNode.ChannelView, quality: String
  ) -> String {
    let flags = member.flags
    let speaks =
      channel.speaker == member.id
      ? Style.bold("active speaker")
      : flags.contains(.speaking) ? Style.green("speaking") : "quiet"
    let voice = member.isSilent ? "muted" : speaks
    let name = Style.padded(member.name, to: 20)
    // Only roles other than presenter are shown; an open channel has no other role.
    let role = member.role == .presenter ? "" : member.role.name
    let rank = channel.isCreated ? Style.padded(role, to: 10) : ""
    let isInitiator = member.isInCall && channel.call?.info.initiator == member.id
    let position = isInitiator ? "leads it" : member.isInCall ? "in call" : "not joined"
    let state = Style.padded(position, to: 12)
    let camera = member.isInvisible ? "camera off  " : ""
    let mark = Style.mark(member.isInCall)
    let shared = member.isInCall && flags.contains(.sharing) ? "shares a screen  " : ""
    return "  \(mark) \(name)\(rank)\(state)\(camera)\(shared)\(voice)  \(Style.dim(quality))"
  }

  private func name(of member: NodeID, in channel: MusterNode.ChannelView) -> String {
    channel.members.first { $0.id == member }?.name ?? member.short
  }

  private func quality(_ peer: Statistics.Peer?, in channel: MusterNode.ChannelView) -> String {
    guard let peer else { return "" }
    var parts: [String] = []
    if let relay = peer.via {
      parts.append("via \(name(of: relay, in: channel))")
    }
    if let layer = peer.received?.layer { parts.append("\(layer)") }
    if let received = peer.received { parts.append("\(Int(received.kilobitsPerSecond)) kbit/s") }
    if let roundTrip = peer.roundTrip {
      parts.append("\(Int(roundTrip.inMilliseconds.rounded())) ms")
    }
    if let loss = peer.received?.audioLostPercent, loss >= 0.5 {
      parts.append("\(Int(loss)) % lost")
    }
    return parts.joined(separator: ", ")
  }
}
