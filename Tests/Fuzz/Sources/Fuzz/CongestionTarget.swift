import MusterBase
import MusterCongestion
import MusterWire

/// A sender of 3,000 packets over four routes, whose receiver reports whatever it likes.
enum CongestionTarget {
  static func run(_ bytes: [UInt8]) {
    var history = SendHistory()
    var controller = PathController()
    controller.demand = DataRate(kbps: 3_000)
    var now = Instant.zero + .seconds(100)
    var number: UInt64 = 0
    var arrived = 0
    var reader = Reader(bytes)
    while let feedback = try? report(&reader), number < 3_000 {
      for _ in 0..<20 {
        let route = Route.direct(Address(host: .v4(UInt32(number % 4)), port: 9))
        let serviceClass = ServiceClass.allCases[Int(number % 3)]
        history.sent(number, bytes: 1_200, as: serviceClass, over: route, at: now)
        controller.sent(bytes: 1_200, asks: true, at: now)
        number += 1
      }
      now = now + .milliseconds(Int(feedback.time % 500))
      for report in history.reported(feedback, at: now) {
        check(report.results.allSatisfy { $0.sentAt <= now }, "only what was sent is reported")
        arrived += report.results.count { $0.fate != .lost }
        _ = controller.reported(report, at: now)
      }
      check(arrived <= number, "no packet arrives twice")
      check(PathController.limits.contains(controller.estimate), "the estimate has limits")
    }
  }

  /// A report about packets that may have been sent: `base 2 | time 4 | count 1 | arrivals`.
  private static func report(_ reader: inout Reader) throws(WireError) -> CongestionFeedback {
    var writer = Writer(capacity: 64)
    writer.u8(PayloadKind.feedbackByte)
    writer.u32(1)
    writer.u64(UInt64(try reader.u16() % 4_096))
    writer.u32(try reader.u32())
    for _ in 0...(try reader.u8()) { writer.u16(try reader.u16()) }
    return try CongestionFeedback(decoding: writer.bytes)
  }
}
