import MusterBase
import MusterDevices
import MusterPipeline
import Testing

/// What a slot does with its devices, without threads and devices.
struct DeviceLifeTests {
  private static let gone = DeviceError(what: "it is gone", hint: "plug it in")
  private static let busy = DeviceError(what: "it is in use", hint: "close it", isBusy: true)
  private static let camera = DeviceLife.Choice(1, isDevice: true)
  private static let other = DeviceLife.Choice(2, isDevice: true)
  private static let file = DeviceLife.Choice(3, isDevice: false)

  private func seconds(_ count: Double) -> Instant { .zero + .seconds(count) }

  /// A life whose camera is in use, as opening 1.
  private func live() -> DeviceLife {
    var life = DeviceLife()
    _ = life.want(true)
    _ = life.choose(Self.camera)
    _ = life.opened(1)
    life.works(1, at: .zero)
    return life
  }

  @Test func aDeviceIsOpenOnlyWhileItIsWanted() {
    var life = DeviceLife()
    #expect(life.choose(Self.camera) == [.open(1, choice: 1)])
    #expect(life.opened(1) == [.report(.ready(1)), .close(1)])
    #expect(life.want(true) == [.open(2, choice: 1)])
    #expect(life.opened(2) == [.use(2), .report(.ready(2))])
    #expect(life.want(false) == [.close(2)])
    #expect(life.want(false) == [])
  }

  @Test func aFileStaysOpen() {
    var life = DeviceLife()
    #expect(life.choose(Self.file) == [.open(1, choice: 3)])
    #expect(life.opened(1) == [.use(1), .report(.ready(1))])
    #expect(life.want(true) == [])
    #expect(life.want(false) == [])
    #expect(life.failed(1, Self.gone, at: .zero) == [.close(1), .report(.ended(Self.gone))])
    #expect(life.want(true) == [])
  }

  @Test func whatIsReplacedGoesOnUntilTheNewOneIsOpen() {
    var life = live()
    #expect(life.choose(Self.other) == [.open(2, choice: 2)])
    #expect(life.opened(2) == [.use(2), .close(1), .report(.ready(2))])
  }

  @Test func aReplacementThatDoesNotOpenLeavesWhatWasThere() {
    var life = live()
    _ = life.choose(Self.other)
    #expect(life.failed(2, Self.gone, at: .zero) == [.close(2), .report(.refused(Self.gone))])
    #expect(life.want(false) == [.close(1)])
  }

  /// Two names of one device: it can be opened only once the former opening is closed.
  @Test func aBusyReplacementIsOpenedAfterTheOldOneIsClosed() {
    var life = live()
    _ = life.choose(Self.other)
    #expect(life.failed(2, Self.busy, at: .zero) == [.close(2), .close(1), .open(3, choice: 2)])
    // Another program has it: back to what there was.
    #expect(
      life.failed(3, Self.busy, at: .zero)
        == [.close(3), .report(.refused(Self.busy)), .open(4, choice: 1)])
    #expect(life.opened(4) == [.use(4), .report(.ready(4))])
  }

  @Test func aLostDeviceIsTriedAgainAndReportedOnce() {
    var life = live()
    var now = seconds(20)
    var opening = 1
    var delays: [Double] = []
    for attempt in 0..<7 {
      let out = life.failed(opening, Self.gone, at: now)
      #expect(out == [.close(opening)] + (attempt == 0 ? [.report(.lost(Self.gone))] : []))
      let due = life.deadline ?? .zero
      delays.append((due - now).inSeconds)
      #expect(life.tick(at: due.advanced(by: .milliseconds(-1))) == [])
      opening += 1
      #expect(life.tick(at: due) == [.open(opening, choice: 1)])
      now = due
    }
    #expect(delays == [0.5, 1, 2, 4, 8, 8, 8])
    // Back again, it fails at once: no second report. After ten seconds it is a loss of its own.
    _ = life.opened(opening)
    life.works(opening, at: now)
    #expect(life.failed(opening, Self.gone, at: now) == [.close(opening)])
    _ = life.tick(at: now + .seconds(10))
    _ = life.opened(opening + 1)
    life.works(opening + 1, at: now + .seconds(10))
    let later = life.failed(opening + 1, Self.gone, at: now + .seconds(20))
    #expect(later == [.close(opening + 1), .report(.lost(Self.gone))])
    #expect(life.deadline == now + .seconds(20.5))
  }

  @Test func aFirstChoiceThatDoesNotOpenLeavesNothing() {
    var life = DeviceLife()
    _ = life.choose(Self.camera)
    #expect(life.failed(1, Self.gone, at: .zero) == [.close(1), .report(.refused(Self.gone))])
    #expect(life.want(true) == [] && life.choices.isEmpty)
  }

  @Test func nothingIsOpenedAfterTheEnd() {
    var life = live()
    _ = life.choose(Self.other)
    #expect(life.stop() == [.close(2), .close(1)])
    #expect(life.opened(2) == [] && life.failed(1, Self.gone, at: .zero) == [])
    #expect(life.choose(Self.file) == [] && life.want(false) == [] && life.deadline == nil)
  }

  /// A file is held while nobody wants it; a camera in its place is only tried.
  @Test func aDeviceThatReplacesAnUnwantedFileIsClosedAgain() {
    var life = DeviceLife()
    _ = life.choose(Self.file)
    _ = life.opened(1)
    #expect(life.choose(Self.camera) == [.open(2, choice: 1)])
    #expect(life.opened(2) == [.report(.ready(2)), .close(1), .close(2)])
    #expect(life.want(true) == [.open(3, choice: 1)])
  }

  /// It never works: neither the next call nor the next viewer hears of it again.
  @Test func aLossIsReportedOnceHoweverOftenItIsWanted() {
    var life = live()
    var reports = 0
    for opening in 1..<9 {
      let out = life.failed(opening, Self.gone, at: .zero)
      reports += out.filter { $0 == .report(.lost(Self.gone)) }.count
      _ = life.want(false)
      _ = life.want(true)
    }
    #expect(reports == 1)
    // Another device is another matter.
    _ = life.choose(Self.other)
    _ = life.opened(10)
    #expect(life.failed(10, Self.gone, at: .zero) == [.close(10), .report(.lost(Self.gone))])
  }

  @Test func aFileThatFailsBesideItsReplacementIsReported() {
    var life = DeviceLife()
    _ = life.want(true)
    _ = life.choose(Self.file)
    _ = life.opened(1)
    _ = life.choose(Self.other)
    #expect(life.failed(1, Self.gone, at: .zero) == [.close(1), .report(.ended(Self.gone))])
    #expect(life.failed(2, Self.gone, at: .zero) == [.close(2), .report(.refused(Self.gone))])
    #expect(life.choices.isEmpty)
  }

  /// Random inputs with late answers: at most one device in use and one beside it, each opening
  /// closed once, and none used after that.
  @Test(arguments: [UInt64(1), 77, 0xC0FFEE]) func everyOpeningIsClosedOnce(seed: UInt64) {
    for round in 0..<700 {
      var random = PRNG(seed: seed &+ UInt64(round))
      var life = DeviceLife()
      var open: Set<Int> = []
      var used: Int?
      var devices: Set<Int> = []
      var (number, now, isWanted) = (0, Instant.zero, false)
      var kinds: [Int: Bool] = [:]
      func carryOut(_ outputs: [DeviceLife.Output]) {
        for output in outputs {
          switch output {
          case .open(let opening, let choice):
            #expect(open.insert(opening).inserted)
            if kinds[choice] == true { devices.insert(opening) }
          case .use(let opening):
            #expect(open.contains(opening))
            used = opening
          case .close(let opening):
            #expect(open.remove(opening) != nil)
            if used == opening { used = nil }
          case .report: break
          }
        }
      }
      for _ in 0..<40 {
        now = now + .milliseconds(Int64(random.below(1500)))
        let opening = number == 0 ? 1 : random.below((open.max() ?? 1) + 1)
        switch random.below(8) {
        case 0, 1:
          number += 1
          let isDevice = random.below(3) > 0
          kinds[number] = isDevice
          carryOut(life.choose(.init(number, isDevice: isDevice)))
        case 2: carryOut(life.choose(nil))
        case 3:
          isWanted = random.below(2) == 0
          carryOut(life.want(isWanted))
        case 4, 5: carryOut(life.opened(opening))
        case 6:
          let error = random.below(2) == 0 ? Self.busy : Self.gone
          carryOut(life.failed(opening, error, at: now))
        default: carryOut(life.tick(at: now))
        }
        #expect(open.count <= 2 && life.choices.count <= 3, "seed \(seed) round \(round)")
        if !isWanted, let used { #expect(!devices.contains(used), "seed \(seed) round \(round)") }
        if let deadline = life.deadline { #expect(deadline <= now + .seconds(8)) }
      }
      carryOut(life.stop())
      #expect(open.isEmpty && used == nil, "seed \(seed) round \(round)")
    }
  }
}
