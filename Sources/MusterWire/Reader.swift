import MusterBase

/// Why bytes from the network were refused.
public enum WireError: Error, Equatable, Sendable {
  case truncated
  case trailingBytes
  case tooLong
  case invalidValue
  case unsupported
}

/// Reads big-endian fields off the front of a byte string; every read is checked.
public struct Reader: Sendable {
  private let bytes: ArraySlice<UInt8>
  private var position: Int

  public init(_ bytes: [UInt8]) { self.init(bytes[...]) }

  public init(_ bytes: ArraySlice<UInt8>) {
    self.bytes = bytes
    position = bytes.startIndex
  }

  public var remaining: Int { bytes.endIndex - position }
  public var isAtEnd: Bool { remaining == 0 }

  public mutating func u8() throws(WireError) -> UInt8 {
    guard remaining >= 1 else { throw .truncated }
    defer { position += 1 }
    return bytes[position]
  }

  public mutating func u16() throws(WireError) -> UInt16 {
    UInt16(truncatingIfNeeded: try integer(2))
  }

  public mutating func u24() throws(WireError) -> UInt32 {
    UInt32(truncatingIfNeeded: try integer(3))
  }

  public mutating func u32() throws(WireError) -> UInt32 {
    UInt32(truncatingIfNeeded: try integer(4))
  }

  public mutating func u64() throws(WireError) -> UInt64 { try integer(8) }

  private mutating func integer(_ width: Int) throws(WireError) -> UInt64 {
    guard remaining >= width else { throw .truncated }
    var value: UInt64 = 0
    for index in position..<position + width { value = value << 8 | UInt64(bytes[index]) }
    position += width
    return value
  }

  public mutating func slice(_ count: Int) throws(WireError) -> ArraySlice<UInt8> {
    guard count >= 0, remaining >= count else { throw .truncated }
    defer { position += count }
    return bytes[position..<position + count]
  }

  public mutating func array(_ count: Int) throws(WireError) -> [UInt8] { Array(try slice(count)) }

  public mutating func bytes32() throws(WireError) -> Bytes32 {
    guard let value = Bytes32(try slice(32)) else { throw .truncated }
    return value
  }

  /// Everything that is left.
  public mutating func rest() -> ArraySlice<UInt8> {
    defer { position = bytes.endIndex }
    return bytes[position...]
  }

  /// UTF-8 text behind a length byte, at most `limit` bytes; ill-formed text is refused.
  public mutating func text(limit: Int) throws(WireError) -> String {
    let count = Int(try u8())
    guard count <= limit else { throw .tooLong }
    guard let text = String(validating: try slice(count), as: UTF8.self) else {
      throw .invalidValue
    }
    return text
  }

  public func expectEnd() throws(WireError) {
    guard isAtEnd else { throw .trailingBytes }
  }
}

/// Appends big-endian fields to a byte string.
public struct Writer: Sendable {
  public var bytes: [UInt8]

  public init(capacity: Int = 64) {
    bytes = []
    bytes.reserveCapacity(capacity)
  }

  public mutating func u8(_ value: UInt8) { bytes.append(value) }
  public mutating func u16(_ value: UInt16) { integer(UInt64(value), 2) }
  public mutating func u32(_ value: UInt32) { integer(UInt64(value), 4) }
  public mutating func u64(_ value: UInt64) { integer(value, 8) }

  private mutating func integer(_ value: UInt64, _ width: Int) {
    for shift in stride(from: 8 * (width - 1), through: 0, by: -8) {
      bytes.append(UInt8(truncatingIfNeeded: value >> UInt64(shift)))
    }
  }

  public mutating func append(_ more: some Sequence<UInt8>) { bytes.append(contentsOf: more) }
  public mutating func append(_ value: Bytes32) { bytes.append(contentsOf: value.bytes) }

  /// Text behind a length byte; `text` must fit in 255 bytes.
  public mutating func text(_ text: String) {
    let utf8 = Array(text.utf8)
    precondition(utf8.count <= 255)
    u8(UInt8(utf8.count))
    append(utf8)
  }
}
