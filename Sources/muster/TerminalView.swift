import Glibc
import Muster
import MusterBase
import MusterMesh
import MusterWire

/// The live roster in a terminal, and the keys that act on it.
struct TerminalView: Sendable {
  let session: Session
  let stop: @Sendable () -> Void

  /// What the view keeps between events; touched by one task only.
  private struct Screen {
    var messages: [String] = []
    var statistics: Statistics?
    var audioMuted = false
    var videoMuted = false
  }

  /// Lines of recent happenings kept below the roster.
  private static let messagesShown = 6

  func run() async {
    let terminal = RawTerminal()
    defer { terminal.restore() }
    var screen = Screen()
    for notice in session.notices { screen.messages.append("note: \(notice)") }
    let keys = Task {
      for await key in RawTerminal.keys() { await pressed(key) }
    }
    await draw(screen)
    for await event in session.node.events {
      note(event.event, &screen)
      session.page?.noticed(event.event)
      await draw(screen)
    }
    keys.cancel()
  }

  // MARK: Keys

  private func pressed(_ key: UInt8) async {
    switch Character(Unicode.Scalar(key)) {
    case "q", "\u{3}", "\u{4}": stop()
    case "c": await toggleCall()
    case "m": await toggleMute(.audio)
    case "v": await toggleMute(.video)
    default: break
    }
  }

  private func toggleCall() async {
    guard let channel = await session.node.channelViews().first else { return }
    var command = Command(channel.isInCall ? .leaveCall : .startCall)
    command.channel = channel.name
    try? await session.node.perform(command)
  }

  private func toggleMute(_ media: Command.Media) async {
    guard let own = await session.node.channelViews().first?.own else { return }
    let isMuted = own.flags.contains(media == .audio ? .audioMuted : .videoMuted)
    try? await session.node.perform(Command(isMuted ? .unmute : .mute, media: media))
  }

  // MARK: Drawing

  private func note(_ event: Event, _ screen: inout Screen) {
    let line: String? =
      switch event {
      case .memberJoined(_, let member): "\(member.name) is here"
      case .memberLeft(_, let member, let reason): "\(member.name) has gone (\(reason.rawValue))"
      case .callStarted(let channel, _): "a call is on in \(channel)"
      case .callEnded(let channel, _, let reason): "the call in \(channel) is over (\(reason))"
      case .warning(let error): "note: \(error)"
      case .error(let error, _): "error: \(error)"
      case .statistics(let statistics):
        {
          screen.statistics = statistics
          return nil
        }()
      default: nil
      }
    guard let line else { return }
    screen.messages = (screen.messages + [line]).suffix(Self.messagesShown)
  }

  private func draw(_ screen: Screen) async {
    let channels = await session.node.channelViews()
    var lines: [String] = []
    for channel in channels { lines += roster(of: channel, screen) }
    if let page = session.page { lines += ["", "  Page  \(page.url)"] }
    lines += [""] + screen.messages.map { "  \($0)" }
    let isInCall = channels.contains { $0.isInCall }
    let keys =
      "  [c] \(isInCall ? "leave" : "start or join") the call   [m] microphone   [v] camera   [q] quit"
    lines += ["", Style.dim(keys)]
    RawTerminal.show(lines)
  }

  private func roster(of channel: MusterNode.ChannelView, _ screen: Screen) -> [String] {
    var title = "  \(Style.bold(channel.name))"
    if let call = channel.call {
      let count = call.participants.count
      title += "  call ongoing, \(count) \(count == 1 ? "participant" : "participants")"
    } else {
      title += "  no call"
    }
    var lines = ["", title, ""]
    lines.append(line(for: channel.own, quality: channel.isInCall ? "you, in the call" : "you"))
    for member in channel.members {
      let peer = screen.statistics?.peers.first {
        $0.member == member.id && $0.channel == channel.name
      }
      lines.append(line(for: member, quality: quality(peer)))
    }
    if channel.members.isEmpty { lines.append(Style.dim("  nobody else yet")) }
    return lines
  }

  private func line(for member: Member, quality: String) -> String {
    let flags = member.flags
    let voice =
      flags.contains(.audioMuted)
      ? "muted" : flags.contains(.speaking) ? Style.green("speaking") : "quiet"
    let name = Style.padded(member.name, to: 20)
    let state = Style.padded(member.isInCall ? "in call" : "not joined", to: 12)
    let camera = flags.contains(.videoMuted) ? "camera off  " : ""
    return
      "  \(Style.mark(member.isInCall)) \(name)\(state)\(camera)\(voice)  \(Style.dim(quality))"
  }

  private func quality(_ peer: Statistics.Peer?) -> String {
    guard let peer else { return "" }
    var parts: [String] = []
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

/// ANSI styles; names are sanitised before they come here.
enum Style {
  /// Files and pipes get plain text.
  private static let isShown = isatty(STDOUT_FILENO) == 1

  static func bold(_ text: String) -> String { styled(text, 1) }
  static func dim(_ text: String) -> String { styled(text, 2) }
  static func green(_ text: String) -> String { styled(text, 32) }

  private static func styled(_ text: String, _ code: Int) -> String {
    isShown ? "\u{1B}[\(code)m\(text)\u{1B}[0m" : text
  }

  static func mark(_ isOn: Bool) -> String { isOn ? green("●") : "○" }

  static func padded(_ text: String, to width: Int) -> String {
    let shown = text.count > width - 1 ? String(text.prefix(width - 2)) + "…" : text
    return shown + String(repeating: " ", count: max(0, width - shown.count))
  }
}

/// The terminal without line editing and echo, put back as it was at the end.
struct RawTerminal {
  private let saved: termios

  init() {
    var state = termios()
    tcgetattr(STDIN_FILENO, &state)
    saved = state
    state.c_lflag &= ~tcflag_t(ICANON | ECHO)
    tcsetattr(STDIN_FILENO, TCSANOW, &state)
    Self.write("\u{1B}[?1049h\u{1B}[?25l")  // alternate screen, no cursor
  }

  func restore() {
    Self.write("\u{1B}[?25h\u{1B}[?1049l")
    var state = saved
    tcsetattr(STDIN_FILENO, TCSANOW, &state)
  }

  static func show(_ lines: [String]) {
    var text = "\u{1B}[H"
    for line in lines { text += line + "\u{1B}[K\r\n" }
    write(text + "\u{1B}[J")
  }

  /// Single key presses.
  static func keys() -> AsyncStream<UInt8> {
    let (stream, continuation) = AsyncStream<UInt8>.makeStream(
      bufferingPolicy: .bufferingNewest(64))
    let box = Unmanaged.passRetained(Box(continuation))
    var thread = pthread_t()
    pthread_create(
      &thread, nil,
      { raw in
        guard let raw else { return nil }
        let keys = Unmanaged<Box>.fromOpaque(raw).takeRetainedValue().continuation
        var byte: UInt8 = 0
        while true {
          let count = read(STDIN_FILENO, &byte, 1)
          if count == 1 { keys.yield(byte) } else if count == 0 || errno != EINTR { break }
        }
        keys.finish()
        return nil
      }, box.toOpaque())
    pthread_detach(thread)
    return stream
  }

  private final class Box {
    let continuation: AsyncStream<UInt8>.Continuation

    init(_ continuation: AsyncStream<UInt8>.Continuation) { self.continuation = continuation }
  }

  private static func write(_ text: String) {
    let bytes = Array(text.utf8)
    _ = Glibc.write(STDOUT_FILENO, bytes, bytes.count)
  }
}
