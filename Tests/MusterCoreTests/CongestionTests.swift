import MusterBase
import MusterCore
import MusterCrypto
import MusterLink
import MusterSimulator
import MusterWire
import Testing

/// Two nodes in a call for 130 s, in which the second session begins. The first node's packets are
/// reported on by the second; a copy of the first node's link engine opens the reports.
private struct ReportedCall: Sendable {
  static let only = Result { try ReportedCall() }
  static let key = ChannelKey.fromName("\(Marker.text) feedback")
  static let loss = 40

  /// The session and number of a packet, which are not encrypted.
  struct Name: Hashable {
    let session: UInt32
    let number: UInt64
  }

  let sent: [Name]
  let sentBytes: Int
  let arrivals: [Name: Instant]
  let reports: [(feedback: CongestionFeedback, bytes: Int)]
  let end: Instant

  init() throws {
    var world = CoreWorld(2, seed: 3)
    var count = 0
    world.passes = { from, to, kind in
      // Only the second node discovers the other, so that the first is the responder.
      if to == 0, kind == .announcement { return false }
      guard from == 0, kind == .data else { return true }
      count += 1
      return !count.isMultiple(of: Self.loss)
    }
    world.join("feedback", Self.key)
    world.run(for: .seconds(130))
    let eyes = world.eyes(of: 0, [Self.key])
    let isSame = eyes.isSame
    try #require(isSame, "the copy of the node's engine has other keys than the node")
    let data = world.hosts[0].sent.filter { $0.kind == .data }
    sent = data.map(Self.name)
    sentBytes = data.reduce(0) { $0 + $1.datagram.count + 28 }
    arrivals = Dictionary(
      uniqueKeysWithValues: world.hosts[1].received.filter { $0.kind == .data }.map {
        (Self.name($0), $0.arrivesAt)
      })
    reports = try eyes.seen.filter { $0.payload.first == PayloadKind.feedbackByte }.map {
      (try CongestionFeedback(decoding: $0.payload), $0.packet.bytes + 28)
    }
    end = world.now
  }

  private static func name(_ flight: CoreWorld.Flight) -> Name {
    var reader = Reader(flight.datagram.dropFirst())
    return Name(session: (try? reader.u32()) ?? 0, number: (try? reader.u64()) ?? 0)
  }

  /// The units of time on the wire.
  static func units(_ instant: Instant) -> UInt32 {
    UInt32(instant.nanoseconds / 250_000)
  }
}

@Test func bothSessionsOfACallAreReportedToTheEndOfEach() throws {
  let call = try ReportedCall.only.get()
  let sessions = Set(call.reports.map(\.feedback.session))
  #expect(sessions.count == 2 && sessions.isSubset(of: call.sent.map(\.session)))
  var reported: [ReportedCall.Name: UInt32] = [:]
  var missing = 0
  for (feedback, _) in call.reports {
    for (offset, block) in feedback.arrivals.enumerated() {
      let name = ReportedCall.Name(
        session: feedback.session, number: feedback.base + UInt64(offset))
      let arrival = call.arrivals[name]
      if let age = block.age {
        reported[name] = feedback.time - UInt32(age / CongestionFeedback.Arrival.unit)
      } else {
        missing += 1
        #expect(arrival.map { ReportedCall.units($0) >= feedback.time } ?? true)
      }
    }
  }
  #expect(missing > 50)
  for (name, at) in reported {
    #expect(call.arrivals[name].map(ReportedCall.units) == at)
  }
  // Reports begin with the first media packet of a session, and the latest packets are not due yet.
  for session in sessions {
    let first = reported.keys.filter { $0.session == session }.map(\.number).min() ?? 0
    let due = call.arrivals.filter {
      $0.key.session == session && $0.key.number >= first && call.end - $0.value > .seconds(1)
    }
    #expect(due.count > 500 && due.keys.allSatisfy { reported[$0] != nil })
    #expect(first < 100)
  }
}

@Test func reportsHaveAtMostAFewPercentOfWhatTheyReportOn() throws {
  let call = try ReportedCall.only.get()
  let bytes = call.reports.reduce(0) { $0 + $1.bytes }
  #expect(call.reports.count > 300)
  #expect(Double(bytes) < 0.05 * Double(call.sentBytes) + 1_000)
}
