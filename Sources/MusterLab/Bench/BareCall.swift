import Muster
import MusterBase
import MusterCodecs
import MusterCrypto
import MusterSystem

/// Encryption with bare libsodium, as the baseline of the benchmarks.
enum BareSodium {
  static func key() -> SecretBytes {
    var entropy = Entropy.system
    return entropy.secret(AEAD.keyBytes, in: .heap)
  }

  static func sealAndOpen(
    _ buffer: inout [UInt8], into opened: inout [UInt8], counter: UInt64, key: SecretBytes
  ) {
    let header = 13
    buffer.withUnsafeMutableBytes { all in
      let associated = UnsafeRawBufferPointer(rebasing: all[..<header])
      let message = UnsafeMutableRawBufferPointer(rebasing: all[header...])
      AEAD.sealInPlace(message, counter: counter, associatedData: associated, key: key)
      opened.withUnsafeMutableBytes { target in
        precondition(
          AEAD.open(
            UnsafeRawBufferPointer(message), into: target, counter: counter,
            associatedData: associated, key: key))
      }
    }
  }
}

/// The minimum work of a 1:1 call: codecs, cipher and system calls in both directions, paced like a
/// real call so that CPU caches are equally cold.
final class BareCall {
  private let frames: [I420Frame]
  private let key = BareSodium.key()
  private var counter: UInt64 = 0
  private var directions: [Direction] = []
  private let socket: Int32
  private var address = sockaddr_in()

  private struct Direction {
    var encoder: VP8Encoder
    var decoder: VP8Decoder
    var opusEncoder: OpusEncoder
    var opusDecoder: OpusDecoder
  }

  private static let tickMilliseconds = 20

  init(frames: [I420Frame]) throws {
    self.frames = frames
    socket = MusterSystem.socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let bound = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { raw in
        bind(socket, raw, length) == 0 && getsockname(socket, raw, &length) == 0
      }
    }
    guard socket >= 0, bound else {
      throw MusterError("cannot open a UDP socket", hint: "check the limits of this process")
    }
    for _ in 0..<2 {
      directions.append(
        Direction(
          encoder: try VP8Encoder(
            size: CallBench.size, framesPerSecond: CallBench.framesPerSecond,
            kilobitsPerSecond: CallBench.kilobitsPerSecond), decoder: try VP8Decoder(),
          opusEncoder: try OpusEncoder(), opusDecoder: try OpusDecoder()))
    }
  }

  deinit { close(socket) }

  /// Runs for the given time and returns the average number of CPU cores used.
  func run(seconds: Int) throws -> Double {
    let pcm = (0..<960).map { Int16(8000 * sin(Double($0) * 2 * .pi * 440 / 48_000)) }
    let start = BootClock.now
    let cpu = ProcessUsage.cpuSeconds
    var frame = 0
    for tick in 0..<seconds * 1000 / Self.tickMilliseconds {
      let now = start + .milliseconds(tick * Self.tickMilliseconds)
      wait(until: now)
      for index in directions.indices {
        let packet = try directions[index].opusEncoder.encode(pcm)
        _ = try directions[index].opusDecoder.decode(try pass(packet))
      }
      let due = tick * Self.tickMilliseconds * CallBench.framesPerSecond / 1000
      while frame <= due {
        for index in directions.indices { try passFrame(frame, index, now) }
        frame += 1
      }
    }
    return (ProcessUsage.cpuSeconds - cpu) / Double(seconds)
  }

  private func passFrame(_ number: Int, _ index: Int, _ now: Instant) throws {
    guard
      let encoded = try directions[index].encoder.encode(
        frames[number % frames.count], at: now, forceKeyframe: number == 0)
    else { return }
    var received: [UInt8] = []
    for start in stride(from: 0, to: encoded.data.count, by: Limits.rtpPayloadBytes) {
      let end = min(start + Limits.rtpPayloadBytes, encoded.data.count)
      received += try pass(Array(encoded.data[start..<end]))
    }
    _ = try directions[index].decoder.decode(received)
  }

  /// Seals, sends, receives and opens one payload.
  private func pass(_ payload: [UInt8]) throws -> [UInt8] {
    counter += 1
    var buffer = [UInt8](repeating: 0, count: 13 + payload.count + AEAD.tagBytes)
    buffer.replaceSubrange(13..<13 + payload.count, with: payload)
    var opened = [UInt8](repeating: 0, count: payload.count)
    let isWhole = buffer.withUnsafeMutableBytes { all -> Bool in
      let associated = UnsafeRawBufferPointer(rebasing: all[..<13])
      let message = UnsafeMutableRawBufferPointer(rebasing: all[13...])
      AEAD.sealInPlace(message, counter: counter, associatedData: associated, key: key)
      guard exchange(all) else { return false }
      return opened.withUnsafeMutableBytes {
        AEAD.open(
          UnsafeRawBufferPointer(message), into: $0, counter: counter, associatedData: associated,
          key: key)
      }
    }
    guard isWhole else {
      throw MusterError("a datagram on the loopback interface was lost", hint: "try again")
    }
    return opened
  }

  private func exchange(_ bytes: UnsafeMutableRawBufferPointer) -> Bool {
    let length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let sent = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        sendto(socket, bytes.baseAddress, bytes.count, 0, $0, length)
      }
    }
    return sent == bytes.count
      && recvfrom(socket, bytes.baseAddress, bytes.count, 0, nil, nil) == bytes.count
  }

  private func wait(until due: Instant) {
    let microseconds = (due - BootClock.now).wholeNanoseconds / 1000
    if microseconds > 0 { usleep(UInt32(clamping: microseconds)) }
  }
}
