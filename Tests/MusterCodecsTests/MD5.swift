import Glibc

/// MD5 (RFC 1321), for comparing with the published test vectors and for nothing else.
enum MD5 {
  private static let shifts: [[UInt32]] = [
    [7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21],
  ]
  private static let sines: [UInt32] = (0..<64).map { UInt32(abs(sin(Double($0 + 1))) * 0x1p32) }

  static func hex(_ message: [UInt8]) -> String {
    var state: [UInt32] = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476]
    var padded = message + [0x80]
    padded += [UInt8](repeating: 0, count: (120 - padded.count % 64) % 64)
    let bits = UInt64(message.count) * 8
    padded += (0..<8).map { UInt8(truncatingIfNeeded: bits >> UInt64(8 * $0)) }
    padded.withUnsafeBytes { bytes in
      for block in stride(from: 0, to: bytes.count, by: 64) {
        mix(&state, UnsafeRawBufferPointer(rebasing: bytes[block..<(block + 64)]))
      }
    }
    return state.map { word in
      (0..<4).map { hex(UInt8(truncatingIfNeeded: word >> UInt32(8 * $0))) }.joined()
    }.joined()
  }

  private static func mix(_ state: inout [UInt32], _ block: UnsafeRawBufferPointer) {
    var (a, b, c, d) = (state[0], state[1], state[2], state[3])
    for step in 0..<64 {
      let round = step / 16
      let f: UInt32
      let word: Int
      switch round {
      case 0: (f, word) = ((b & c) | (~b & d), step)
      case 1: (f, word) = ((d & b) | (~d & c), (5 * step + 1) % 16)
      case 2: (f, word) = (b ^ c ^ d, (3 * step + 5) % 16)
      default: (f, word) = (c ^ (b | ~d), 7 * step % 16)
      }
      let value = block.loadUnaligned(fromByteOffset: word * 4, as: UInt32.self)
      let sum = a &+ f &+ sines[step] &+ UInt32(littleEndian: value)
      let shift = shifts[round][step % 4]
      (a, d, c) = (d, c, b)
      b = b &+ (sum << shift | sum >> (32 - shift))
    }
    state[0] &+= a
    state[1] &+= b
    state[2] &+= c
    state[3] &+= d
  }

  private static func hex(_ byte: UInt8) -> String {
    let text = String(byte, radix: 16)
    return text.count == 1 ? "0" + text : text
  }
}
