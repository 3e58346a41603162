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
    // The call may be over by now, or another may lead it.
    if screen.question?.calls(in: channels).isEmpty ?? false {
      screen.question = nil
    }
    terminal.show(screen.lines(channels, page: session.page?.url, size: RawTerminal.size))
  }

  // MARK: Keys

  private func pressed(_ input: [UInt8]) async {
    if let question = screen.question {
      await answer(question, with: input)
      await draw()
      return
    }
    var rest = input[...]
    // Keys that send several bytes, such as arrows, have no function here.
    if screen.editor == nil, rest.first == 0x1B { return }
    while screen.editor == nil, screen.question == nil, let key = rest.popFirst() {
      await pressed(key)
    }
    if screen.editor != nil, !rest.isEmpty { await write(Array(rest)) }
    if let question = screen.question { await answer(question, with: Array(rest)) }
    await draw()
  }

  private func pressed(_ key: UInt8) async {
    switch Character(Unicode.Scalar(key)) {
    case "\u{3}", "\u{4}": stop()
    case "q": if await !ask(.quit) { stop() }
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
    guard channel.isInCall else {
      await perform(.startCall(channel: channel.name))
      return
    }
    if await !ask(.leaveCall(channel: channel.name)) {
      await perform(.leaveCall(channel: channel.name))
    }
  }

  /// Asks what is to become of calls that others are in; returns false if there is nothing to ask.
  private func ask(_ request: LeaveQuestion.Request) async -> Bool {
    let question = LeaveQuestion(request: request)
    guard await !calls(of: question).isEmpty else { return false }
    screen.question = question
    return true
  }

  private func calls(of question: LeaveQuestion) async -> [MusterNode.ChannelView] {
    question.calls(in: await session.node.channelViews())
  }

  private func answer(_ question: LeaveQuestion, with input: [UInt8]) async {
    if let key = input.first, key == 0x03 || key == 0x04 { return stop() }
    let calls = await calls(of: question)
    let canHandOver = LeaveQuestion.canHandOver(calls)
    guard let answer = LeaveQuestion.answer(input, canHandOver: canHandOver) else { return }
    screen.question = nil
    guard answer != .stay else { return }
    for channel in calls {
      let isDone = await perform(
        .leaveCall(handOver: answer == .handOver, channel: channel.name))
      // The successor has gone meanwhile: to quit now would end the call.
      guard isDone else { return }
    }
    if question.request == .quit { stop() }
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

  /// Returns whether the node has carried the command out.
  @discardableResult
  private func perform(_ command: Command) async -> Bool {
    do {
      try await session.node.perform(command)
      return true
    } catch {
      screen.note("error: \(error)")
      return false
    }
  }
}
