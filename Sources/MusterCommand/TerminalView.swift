import Muster
import MusterBase
import MusterView

/// The live view of a node in a terminal, controlled by keys.
actor TerminalView {
  private let session: Session
  private let terminal: RawTerminal
  private let stop: @Sendable () -> Void
  private var screen: TerminalScreen

  /// The maximum number of earlier messages per channel that are displayed at the start.
  private static let historyShown = 5

  /// Switches the terminal to raw mode.
  init(session: Session, output: OutputWriter, stop: @escaping @Sendable () -> Void) {
    self.session = session
    terminal = RawTerminal(output)
    self.stop = stop
    screen = TerminalScreen(own: session.node.id)
  }

  func run() async {
    defer { terminal.restore() }
    for notice in session.notices { screen.note("note: \(notice)") }
    for channel in await session.node.channelViews() {
      let history = (try? await session.node.messages(in: channel.name)) ?? []
      for message in history.suffix(Self.historyShown) {
        screen.note(.message(channel: channel.name, message))
      }
    }
    let keys = Task {
      for await input in RawTerminal.keys() { await pressed(input) }
    }
    await draw()
    for await event in session.events {
      screen.note(event.event)
      await draw()
    }
    keys.cancel()
  }

  private func draw() async {
    let channels = await session.node.channelViews()
    screen.activeChannel = min(screen.activeChannel, max(0, channels.count - 1))
    terminal.show(screen.lines(channels, page: session.page?.url, size: RawTerminal.size))
  }

  // MARK: Keys

  private func pressed(_ input: [UInt8]) async {
    var rest = input[...]
    // Keys that send several bytes, such as arrows, have no function here.
    if screen.editor == nil, rest.first == 0x1B { return }
    while screen.editor == nil, let key = rest.popFirst() { await pressed(key) }
    if screen.editor != nil, !rest.isEmpty { await write(Array(rest)) }
    await draw()
  }

  private func pressed(_ key: UInt8) async {
    switch Character(Unicode.Scalar(key)) {
    case "q", "\u{3}", "\u{4}": stop()
    case "c": await toggleCall()
    case "m": await toggleMute(.audio)
    case "v": await toggleMute(.video)
    case "s": await toggleMute(.share)
    case "t": if await active != nil { screen.editor = LineEditor() }
    case "\t": await nextChannel()
    default: break
    }
  }

  /// The channel that key commands apply to.
  private var active: MusterNode.ChannelView? {
    get async {
      let channels = await session.node.channelViews()
      return channels.indices.contains(screen.activeChannel)
        ? channels[screen.activeChannel] : channels.first
    }
  }

  private func nextChannel() async {
    let count = await session.node.channelViews().count
    screen.activeChannel = count == 0 ? 0 : (screen.activeChannel + 1) % count
  }

  private func toggleCall() async {
    guard let channel = await active else { return }
    await perform(
      channel.isInCall ? .leaveCall(channel: channel.name) : .startCall(channel: channel.name))
  }

  private func toggleMute(_ media: Command.Media) async {
    guard let own = await active?.own else { return }
    let isMuted =
      switch media {
      case .audio: own.flags.contains(.audioMuted)
      case .video: own.flags.contains(.videoMuted)
      case .share: !own.flags.contains(.sharing)
      }
    await perform(isMuted ? .unmute(media) : .mute(media))
  }

  private func write(_ input: [UInt8]) async {
    guard var editor = screen.editor else { return }
    let outcome = editor.take(input)
    screen.editor = outcome == .editing ? editor : nil
    guard case .sent(let text) = outcome, !text.isEmpty, let channel = await active else { return }
    await perform(.say(text, channel: channel.name))
  }

  private func perform(_ command: Command) async {
    do {
      try await session.node.perform(command)
    } catch {
      screen.note("error: \(error)")
    }
  }
}
