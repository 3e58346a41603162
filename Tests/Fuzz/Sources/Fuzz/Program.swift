import MusterBase

/// An input read as a program: fields off the front, zeros when there are no more.
struct Program {
  private var rest: ArraySlice<UInt8>

  init(_ bytes: [UInt8]) { rest = bytes[...] }

  var isAtEnd: Bool { rest.isEmpty }

  mutating func u8() -> UInt8 { rest.popFirst() ?? 0 }
  mutating func u16() -> UInt16 { UInt16(u8()) << 8 | UInt16(u8()) }
  mutating func u32() -> UInt32 { UInt32(u16()) << 16 | UInt32(u16()) }
  mutating func u64() -> UInt64 { UInt64(u32()) << 32 | UInt64(u32()) }
  mutating func bit() -> Bool { u8() & 1 == 1 }

  /// An index into something that holds `count`, which must be positive.
  mutating func below(_ count: Int) -> Int { Int(u8()) % count }

  /// As many bytes as the next one says, or as are left.
  mutating func bytes() -> [UInt8] {
    let count = Int(u8())
    defer { rest = rest.dropFirst(count) }
    return Array(rest.prefix(count))
  }

  mutating func remainder() -> [UInt8] {
    defer { rest = [] }
    return Array(rest)
  }

  /// From a millisecond to four minutes, so that every timer of an engine is in reach.
  mutating func duration() -> Duration { .milliseconds(1 << Int(u8() % 19)) }
}

/// A promise that a target checks; in every configuration, unlike `assert`.
func check(_ condition: Bool, _ promise: @autoclosure () -> String) {
  if !condition { fatalError(promise()) }
}
