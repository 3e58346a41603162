import MusterBase

/// An input, read as a program: fields from the front, zeros after its end.
struct Program {
  private var rest: ArraySlice<UInt8>

  init(_ bytes: [UInt8]) { rest = bytes[...] }

  var isAtEnd: Bool { rest.isEmpty }

  mutating func u8() -> UInt8 { rest.popFirst() ?? 0 }
  mutating func u16() -> UInt16 { UInt16(u8()) << 8 | UInt16(u8()) }
  mutating func u32() -> UInt32 { UInt32(u16()) << 16 | UInt32(u16()) }
  mutating func u64() -> UInt64 { UInt64(u32()) << 32 | UInt64(u32()) }
  mutating func bit() -> Bool { u8() & 1 == 1 }

  /// An index below `count`, which must be positive.
  mutating func below(_ count: Int) -> Int { Int(u8()) % count }

  /// A length byte and that many bytes, or as many as are left.
  mutating func bytes() -> [UInt8] {
    let count = Int(u8())
    defer { rest = rest.dropFirst(count) }
    return Array(rest.prefix(count))
  }

  mutating func remainder() -> [UInt8] {
    defer { rest = [] }
    return Array(rest)
  }

  /// From a millisecond to four minutes, which covers every timer of the engines.
  mutating func duration() -> Duration { .milliseconds(1 << Int(u8() % 19)) }
}

/// Checks a promise in every configuration, unlike `assert`.
func check(_ condition: Bool, _ promise: @autoclosure () -> String) {
  if !condition { fatalError(promise()) }
}
