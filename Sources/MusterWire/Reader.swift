import MusterBase

/// The reason why input from the network was rejected.
public enum WireError: Error, Equatable, Sendable {
  /// The input ends within a field.
  case truncated
  /// Bytes are left after the last field.
  case trailingBytes
  /// A length or count exceeds its limit.
  case tooLong
  /// A field has a value that is not allowed.
  case invalidValue
  /// The input has a version, kind or type that this program does not know.
  case unsupported
}

/// Reads big-endian fields from the front of a byte string; every read checks the bounds.
public struct Reader: Sendable {
  private let bytes: ArraySlice<UInt8>
  private var position: Int

  /// Creates a reader of the whole array.
  public init(_ bytes: [UInt8]) { self.init(bytes[...]) }

  /// Creates a reader of the slice, without copying.
  public init(_ bytes: ArraySlice<UInt8>) {
    self.bytes = bytes
    position = bytes.startIndex
  }

  /// The number of bytes not yet read.
  public var remaining: Int { bytes.endIndex - position }
  /// Whether all bytes have been read.
  public var isAtEnd: Bool { remaining == 0 }

  /// Reads an unsigned integer of 1 byte; all reads throw `truncated` past the end.
  public mutating func u8() throws(WireError) -> UInt8 {
    guard remaining >= 1 else { throw .truncated }
    defer { position += 1 }
    return bytes[position]
  }

  /// Reads an unsigned integer of 2 bytes.
  public mutating func u16() throws(WireError) -> UInt16 {
    UInt16(truncatingIfNeeded: try integer(2))
  }

  /// Reads an unsigned integer of 3 bytes.
  public mutating func u24() throws(WireError) -> UInt32 {
    UInt32(truncatingIfNeeded: try integer(3))
  }

  /// Reads an unsigned integer of 4 bytes.
  public mutating func u32() throws(WireError) -> UInt32 {
    UInt32(truncatingIfNeeded: try integer(4))
  }

  /// Reads an unsigned integer of 8 bytes.
  public mutating func u64() throws(WireError) -> UInt64 { try integer(8) }

  private mutating func integer(_ width: Int) throws(WireError) -> UInt64 {
    guard remaining >= width else { throw .truncated }
    var value: UInt64 = 0
    for index in position..<position + width { value = value << 8 | UInt64(bytes[index]) }
    position += width
    return value
  }

  /// Reads the next `count` bytes, without copying.
  public mutating func slice(_ count: Int) throws(WireError) -> ArraySlice<UInt8> {
    guard count >= 0, remaining >= count else { throw .truncated }
    defer { position += count }
    return bytes[position..<position + count]
  }

  /// Reads a copy of the next `count` bytes.
  public mutating func array(_ count: Int) throws(WireError) -> [UInt8] { Array(try slice(count)) }

  /// Reads the next 32 bytes.
  public mutating func bytes32() throws(WireError) -> Bytes32 {
    guard let value = Bytes32(try slice(32)) else { throw .truncated }
    return value
  }

  /// Reads all remaining bytes.
  public mutating func rest() -> ArraySlice<UInt8> {
    defer { position = bytes.endIndex }
    return bytes[position...]
  }

  /// Reads a length byte and UTF-8 text; throws `tooLong` above `limit` bytes, `invalidValue` for
  /// ill-formed UTF-8.
  public mutating func text(limit: Int) throws(WireError) -> String {
    let count = Int(try u8())
    guard count <= limit else { throw .tooLong }
    guard let text = String(validating: try slice(count), as: UTF8.self) else {
      throw .invalidValue
    }
    return text
  }

  /// Throws `trailingBytes` unless all bytes have been read.
  public func expectEnd() throws(WireError) {
    guard isAtEnd else { throw .trailingBytes }
  }
}

/// Appends big-endian fields to a byte string.
public struct Writer: Sendable {
  /// The bytes written so far.
  public var bytes: [UInt8]

  /// Creates an empty writer with `capacity` bytes reserved.
  public init(capacity: Int = 64) {
    bytes = []
    bytes.reserveCapacity(capacity)
  }

  /// Appends 1 byte.
  public mutating func u8(_ value: UInt8) { bytes.append(value) }
  /// Appends 2 bytes.
  public mutating func u16(_ value: UInt16) { integer(UInt64(value), 2) }
  /// Appends 4 bytes.
  public mutating func u32(_ value: UInt32) { integer(UInt64(value), 4) }
  /// Appends 8 bytes.
  public mutating func u64(_ value: UInt64) { integer(value, 8) }

  private mutating func integer(_ value: UInt64, _ width: Int) {
    for shift in stride(from: 8 * (width - 1), through: 0, by: -8) {
      bytes.append(UInt8(truncatingIfNeeded: value >> UInt64(shift)))
    }
  }

  /// Appends bytes unchanged.
  public mutating func append(_ more: some Sequence<UInt8>) { bytes.append(contentsOf: more) }
  /// Appends 32 bytes.
  public mutating func append(_ value: Bytes32) { bytes.append(contentsOf: value.bytes) }

  /// Appends a length byte and the UTF-8 text, which must have at most 255 bytes.
  public mutating func text(_ text: String) {
    let utf8 = Array(text.utf8)
    precondition(utf8.count <= 255)
    u8(UInt8(utf8.count))
    append(utf8)
  }
}
