import MusterBase
import MusterDevices

/// Decides when to open, use and close the devices of a slot: a camera, microphone or speaker, and
/// its replacements while it runs. A value without threads, told what happens and when.
///
/// A replacement is opened beside the device in use, which goes on until then. Only if the
/// replacement is busy is the old device closed first, since they may be the same. A replacement
/// that does not open leaves what was there before. A device that fails is tried again at growing
/// intervals for as long as it is wanted; files and patterns are not.
package struct DeviceLife: Sendable {
  /// One opening of a device; each has a number of its own.
  package typealias Opening = Int

  /// A device, file or pattern that is to be used.
  package struct Choice: Equatable, Sendable {
    /// The number by which the slot finds what to open.
    package var number: Int
    /// Whether it is open only while wanted, and tried again after a failure.
    package var isDevice: Bool

    package init(_ number: Int, isDevice: Bool) {
      self.number = number
      self.isDevice = isDevice
    }
  }

  /// A step for the slot to take.
  package enum Output: Equatable, Sendable {
    /// Open the choice of this number, and report `opened` or `failed`.
    case open(Opening, choice: Int)
    /// Use this one from now on.
    case use(Opening)
    /// Cancel an opening, or close its device.
    case close(Opening)
    case report(Report)
  }

  /// News for the owner of the slot.
  package enum Report: Equatable, Sendable {
    /// The choice works: this one has been opened. A device that nobody wants is closed again.
    case ready(Opening)
    /// The last choice does not open; the former one stays.
    case refused(DeviceError)
    /// The device has failed, and is tried again. Reported once until it has worked for a while.
    case lost(DeviceError)
    /// The choice is gone for good: a file that failed.
    case ended(DeviceError)
    /// Nothing is chosen any more.
    case empty

    /// The error, for the user.
    package var error: DeviceError? {
      switch self {
      case .ready, .empty: nil
      case .refused(let error), .lost(let error), .ended(let error): error
      }
    }
  }

  private enum Phase: Equatable {
    case closed
    case opening(Opening)
    case live(Opening)
    case waiting(until: Instant)
    case stopped
  }

  /// A lost device is tried again after these times, then each time after the last of them.
  static let retries: [Duration] = [.milliseconds(500)] + [1, 2, 4, 8].map { .seconds($0) }
  /// A device that has worked for this long starts with the first of `retries`, when it is lost.
  static let proof = Duration.seconds(10)

  private var phase = Phase.closed
  private var chosen: Choice?
  /// The choice that last opened, to which a choice that does not open gives way.
  private var proven: Choice?
  /// A replacement that is being opened while another device is in use.
  private var beside: (opening: Opening, choice: Choice)?
  private var isWanted = false
  private var lastOpening = 0
  /// The number of attempts to get a lost device back, and whether the loss was reported.
  private var attempts = 0
  private var isReported = false
  private var worksSince: Instant?

  package init() {}

  /// When `tick` is due; nil while nothing waits.
  package var deadline: Instant? {
    if case .waiting(let until) = phase { until } else { nil }
  }

  /// The numbers of the choices that may have to be opened again.
  package var choices: [Int] { [chosen, proven, beside?.choice].compactMap { $0?.number } }

  // MARK: Inputs

  /// Replaces the choice; nil for none.
  package mutating func choose(_ choice: Choice?) -> [Output] {
    guard phase != .stopped else { return [] }
    var out = closeBeside()
    guard let choice else {
      (chosen, proven) = (nil, nil)
      return out + close() + [.report(.empty)]
    }
    forgetLoss()
    if case .live = phase {
      let (opening, output) = open(choice)
      beside = (opening, choice)
      return out + [output]
    }
    out += close()
    chosen = choice
    return out + reopen()
  }

  /// Says whether the device is needed. Files and patterns stay open.
  package mutating func want(_ isWanted: Bool) -> [Output] {
    guard phase != .stopped, isWanted != self.isWanted else { return [] }
    self.isWanted = isWanted
    if isWanted { return phase == .closed && chosen != nil ? reopen() : [] }
    attempts = 0
    guard chosen?.isDevice ?? false else { return [] }
    if case .opening = phase { return [] }
    let out = close()
    // The replacement is still opened, to see whether it works.
    if let beside {
      (phase, chosen, self.beside) = (.opening(beside.opening), beside.choice, nil)
    }
    return out
  }

  /// Reports that something has been opened.
  package mutating func opened(_ opening: Opening) -> [Output] {
    if let beside, beside.opening == opening, case .live(let old) = phase {
      self.beside = nil
      (chosen, proven) = (beside.choice, beside.choice)
      guard isWanted || !beside.choice.isDevice else {
        phase = .closed
        return [.report(.ready(opening)), .close(old), .close(opening)]
      }
      phase = .live(opening)
      return [.use(opening), .close(old), .report(.ready(opening))]
    }
    guard phase == .opening(opening), let chosen else { return [] }
    proven = chosen
    if isWanted || !chosen.isDevice {
      phase = .live(opening)
      return [.use(opening), .report(.ready(opening))]
    }
    phase = .closed
    return [.report(.ready(opening)), .close(opening)]
  }

  /// Reports that an opening, or a device in use, has failed.
  package mutating func failed(
    _ opening: Opening, _ error: DeviceError, at now: Instant
  ) -> [Output] {
    if let beside, beside.opening == opening {
      self.beside = nil
      guard error.isBusy, chosen?.isDevice ?? false else {
        return [.close(opening), .report(.refused(error))]
      }
      let out = [Output.close(opening)] + close()
      chosen = beside.choice
      return out + reopen()
    }
    guard phase == .opening(opening) || phase == .live(opening), let chosen else { return [] }
    let isInUse = phase == .live(opening)
    let out = close()
    if isInUse, let beside {
      (phase, self.chosen, self.beside) = (.opening(beside.opening), beside.choice, nil)
      if chosen.isDevice { return out }
      proven = nil
      return out + [.report(.ended(error))]
    }
    guard chosen == proven else {
      self.chosen = proven
      let isNeeded = proven.map { isWanted || !$0.isDevice } ?? false
      return out + [.report(.refused(error))] + (isNeeded ? reopen() : [])
    }
    guard chosen.isDevice else {
      (self.chosen, proven) = (nil, nil)
      return out + [.report(.ended(error))]
    }
    return out + lose(error, at: now)
  }

  /// Notes that the device in use works.
  package mutating func works(_ opening: Opening, at now: Instant) {
    if phase == .live(opening), worksSince == nil { worksSince = now }
  }

  /// Tries a lost device again once `deadline` has come.
  package mutating func tick(at now: Instant) -> [Output] {
    guard let deadline, deadline <= now else { return [] }
    return reopen()
  }

  /// Closes everything for good.
  package mutating func stop() -> [Output] {
    let out = closeBeside() + close()
    phase = .stopped
    return out
  }

  // MARK: Steps

  private mutating func open(_ choice: Choice) -> (Opening, Output) {
    lastOpening += 1
    return (lastOpening, .open(lastOpening, choice: choice.number))
  }

  private mutating func reopen() -> [Output] {
    guard let chosen else { return [] }
    let (opening, output) = open(chosen)
    phase = .opening(opening)
    return [output]
  }

  private mutating func close() -> [Output] {
    defer { phase = .closed }
    switch phase {
    case .opening(let opening), .live(let opening): return [.close(opening)]
    case .closed, .waiting, .stopped: return []
    }
  }

  private mutating func closeBeside() -> [Output] {
    defer { beside = nil }
    return beside.map { [.close($0.opening)] } ?? []
  }

  /// Waits before the device is tried again, and reports the first failure of a loss.
  private mutating func lose(_ error: DeviceError, at now: Instant) -> [Output] {
    if let worksSince, now - worksSince >= Self.proof { forgetLoss() }
    worksSince = nil
    guard isWanted else { return [] }
    phase = .waiting(until: now + Self.retries[min(attempts, Self.retries.count - 1)])
    attempts += 1
    defer { isReported = true }
    return isReported ? [] : [.report(.lost(error))]
  }

  private mutating func forgetLoss() { (attempts, isReported, worksSince) = (0, false, nil) }
}
