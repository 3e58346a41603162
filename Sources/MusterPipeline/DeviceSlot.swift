import MusterBase
import MusterDevices
import MusterSystem

/// The device that one thread uses, which can be replaced while it runs; `DeviceLife` decides when.
///
/// Devices are opened on threads of their own, and closed there or by the thread that uses them.
/// The methods for the owner never block.
package final class DeviceSlot<Device: Sendable>: Sendable {
  package typealias Opening = DeviceLife.Opening

  /// A device in use, for the thread that uses it.
  package struct Turn {
    /// The device.
    package let device: Device
    /// Whether nothing has come from it, or gone to it, yet.
    package fileprivate(set) var isNew = true
    fileprivate let opening: Opening
  }

  /// An opening, and the device once that has succeeded.
  private struct Opened {
    let choice: DeviceChoice<Device>
    let cancellation = Cancellation()
    var device: Device?
  }

  private struct State {
    var life = DeviceLife()
    var choices: [Int: DeviceChoice<Device>] = [:]
    var lastChoice = 0
    var opened: [Opening: Opened] = [:]
    /// Openings that no thread has begun yet, oldest first, and those that one has.
    var waiting: [Opening] = []
    var running: [Opening] = []
    /// The number of threads that open something.
    var openers = 0
    /// The one that the thread is to use, and the one that it still holds.
    var inUse: Opening?
    var held: Opening?
    /// Devices to be closed, and the number of threads that do so.
    var unused: [Device] = []
    var closers = 0
    var isWanted = false
    var isStopped = false
    var reports: [(what: DeviceLife.Report, device: Device?)] = []
    var isReporting = false
    /// The caller of `open`, which waits for the first report.
    var caller: CheckedContinuation<DeviceError?, Never>?

    /// Whether a device is still open, or being opened, that is to be closed.
    var isClosing: Bool {
      closers > 0 || ([held].compactMap { $0 } + running).contains { opened[$0] == nil }
    }
    /// Whether there will be a device soon.
    var isOpening: Bool { opened.contains { $0.value.device == nil } }
  }

  /// How many threads may open something at once: one may hang in a driver.
  private static var openers: Int { 2 }
  /// How long an opening waits until what it replaces is closed: far longer than drivers take.
  private static var patience: Duration { .seconds(2) }

  private let state = Monitor(State())
  private let report: @Sendable (DeviceLife.Report, Device?) -> Void

  /// An empty slot. `report` is called on any thread, with one report at a time in their order, and
  /// with the device that is ready.
  package init(report: @escaping @Sendable (DeviceLife.Report, Device?) -> Void) {
    self.report = report
  }

  // MARK: For the owner

  /// Puts a device into the empty slot and waits until it has been opened. Throws if that fails,
  /// and if the task is cancelled, which empties the slot.
  package func open(_ choice: DeviceChoice<Device>) async throws(DeviceError) {
    let error = await withTaskCancellationHandler {
      await withCheckedContinuation { caller in
        let isStopped = state.withLock { state in
          state.caller = caller
          return state.isStopped
        }
        replace(with: isStopped || Task.isCancelled ? nil : choice)
      }
    } onCancel: {
      replace(with: nil)
    }
    if let error { throw error }
  }

  /// Replaces the device; nil closes it.
  package func replace(with choice: DeviceChoice<Device>?) {
    if choice == nil { answer(Self.cancelled) }
    perform { state in
      guard let choice else { return state.life.choose(nil) }
      state.lastChoice += 1
      state.choices[state.lastChoice] = choice
      return state.life.choose(.init(state.lastChoice, isDevice: choice.isDevice))
    }
  }

  /// Says whether the device is needed; `next` waits while it is not.
  package func want(_ isWanted: Bool) {
    perform { state in
      state.isWanted = isWanted
      return state.life.want(isWanted)
    }
  }

  /// Closes the device and ends the thread that uses it.
  package func stop() {
    answer(Self.cancelled)
    perform { state in
      state.isStopped = true
      return state.life.stop()
    }
  }

  private static var cancelled: DeviceError {
    DeviceError(what: "the device was not opened: cancelled", hint: "start again")
  }

  // MARK: For the thread that uses the device

  /// Sets `turn` to the device to use next; closes the one that it held, if that is another. While
  /// there is none, or none is wanted, calls `idle` and waits. False once stopped; with `until`,
  /// also at that time, and while nothing is being opened.
  package func next(
    _ turn: inout Turn?, until: Instant? = nil, idle: () -> Void = {}
  ) -> Bool {
    var isIdle = false
    while true {
      switch step(turn?.opening, waitsUntil: isIdle ? until : .zero) {
      case .go: return true
      case .take(let next): turn = next
      case .drop:
        turn = nil  // the last reference: closes the device
        state.withLock { $0.held = nil }
      case .tick: perform { $0.life.tick(at: BootClock.now) }
      case .wait:
        if let until, isIdle || until <= BootClock.now { return false }
        if !isIdle { idle() }
        isIdle = true
      case .stop:
        leave(&turn)
        return false
      }
    }
  }

  /// Lets go of the device; to be called by a thread that ends.
  package func leave(_ turn: inout Turn?) {
    turn = nil
    state.withLock { $0.held = nil }
  }

  /// Reports that the device has ended, which is a failure unless it was closed.
  package func ended(_ turn: Turn?) {
    guard let turn else { return }
    perform { state in
      guard state.inUse == turn.opening, let name = state.opened[turn.opening]?.choice.name else {
        return []
      }
      let error = DeviceError(what: "\(name) gives nothing any more", hint: "choose another")
      return state.life.failed(turn.opening, error, at: BootClock.now)
    }
  }

  /// Reports that the device in use has failed.
  package func failed(_ turn: Turn?, _ error: DeviceError) {
    guard let turn else { return }
    perform { $0.life.failed(turn.opening, error, at: BootClock.now) }
  }

  /// Notes that the device in use works, which is not new any more.
  package func works(_ turn: inout Turn?) {
    guard let opening = turn?.opening, turn?.isNew == true else { return }
    turn?.isNew = false
    state.withLock { $0.life.works(opening, at: BootClock.now) }
  }

  private enum Step {
    case go
    case take(Turn)
    case drop
    case wait
    case tick
    case stop
  }

  /// What the thread that holds this opening has to do; waits for that until an instant, nil for as
  /// long as it takes.
  private func step(_ held: Opening?, waitsUntil limit: Instant?) -> Step {
    state.wait(until: { [$0.life.deadline, limit].compactMap { $0 }.min() }) { state in
      if state.isStopped { return .stop }
      if held != nil, held != state.inUse { return .drop }
      if held == nil, let opening = state.inUse, let device = state.opened[opening]?.device {
        state.held = opening
        return .take(Turn(device: device, opening: opening))
      }
      if held != nil, state.isWanted { return .go }
      if let due = state.life.deadline, due <= BootClock.now { return .tick }
      return limit != nil && !state.isOpening ? .wait : nil
    } ?? .wait
  }

  // MARK: Outputs

  private func perform(_ body: (inout State) -> [DeviceLife.Output]) {
    let unused = state.withLock { state -> Monitor<[Device]>? in
      let outputs = body(&state)
      guard !outputs.isEmpty else { return nil }
      for output in outputs { Self.perform(output, &state) { self.openWaiting() } }
      let kept = state.life.choices
      state.choices = state.choices.filter { kept.contains($0.key) }
      guard !state.unused.isEmpty else { return nil }
      defer { state.unused = [] }
      state.closers += 1
      return Monitor(state.unused)
    }
    deliverReports()
    guard let unused else { return }
    // On a thread of its own, since drivers take their time.
    WorkerThread("muster-close") { [state] in
      unused.withLock { $0 = [] }
      state.withLock { $0.closers -= 1 }
    }
  }

  private static func perform(
    _ output: DeviceLife.Output, _ state: inout State, _ open: @escaping @Sendable () -> Void
  ) {
    switch output {
    case .open(let opening, let number):
      guard let choice = state.choices[number] else { return }
      state.opened[opening] = Opened(choice: choice)
      state.waiting.append(opening)
      guard state.openers < openers else { return }
      state.openers += 1
      WorkerThread("muster-open", open)
    case .use(let opening): state.inUse = opening
    case .close(let opening):
      let closed = state.opened.removeValue(forKey: opening)
      closed?.cancellation.cancel()
      if state.inUse == opening { state.inUse = nil }
      if let device = closed?.device { state.unused.append(device) }
    case .report(let what):
      var device: Device?
      if case .ready(let opening) = what { device = state.opened[opening]?.device }
      state.reports.append((what, device))
    }
  }

  private func deliverReports() {
    while true {
      let next = state.withLock { state -> (what: DeviceLife.Report, device: Device?)? in
        guard !state.isReporting, !state.reports.isEmpty else { return nil }
        state.isReporting = true
        return state.reports.removeFirst()
      }
      guard let next else { return }
      report(next.what, next.device)
      answer(next.what.error)
      state.withLock { $0.isReporting = false }
    }
  }

  /// Lets the caller of `open` go on, if there is one.
  private func answer(_ error: DeviceError?) {
    let caller = state.withLock { state in
      defer { state.caller = nil }
      return state.caller
    }
    caller?.resume(returning: error)
  }

  /// Opens the devices that wait for it; called on a thread of its own.
  private func openWaiting() {
    while let (opening, opened) = nextToOpen() {
      let error = open(opening, opened)
      perform { state in
        state.running.removeAll { $0 == opening }
        if let error { return state.life.failed(opening, error, at: BootClock.now) }
        return state.opened[opening]?.device == nil ? [] : state.life.opened(opening)
      }
    }
  }

  /// Opens a device and keeps it, unless it has been closed meanwhile; returns the error if that
  /// fails.
  private func open(_ opening: Opening, _ opened: Opened) -> DeviceError? {
    do throws(DeviceError) {
      let device = try opened.choice.open(opened.cancellation)
      state.withLock { $0.opened[opening]?.device = device }
      return nil
    } catch { return error }
  }

  /// The next opening, once no device is left that is to be closed, since it may be the same one;
  /// nil if there is none any more, which ends the thread.
  private func nextToOpen() -> (Opening, Opened)? {
    let limit = BootClock.now + Self.patience
    func take(_ state: inout State) -> (Opening, Opened)?? {
      state.waiting.removeAll { state.opened[$0] == nil }
      guard let opening = state.waiting.first, let opened = state.opened[opening] else {
        state.openers -= 1
        return .some(nil)
      }
      if state.isClosing, BootClock.now < limit { return nil }
      state.waiting.removeFirst()
      state.running.append(opening)
      return .some((opening, opened))
    }
    while true {
      if let next = state.wait(until: { _ in limit }, take) { return next }
    }
  }
}
