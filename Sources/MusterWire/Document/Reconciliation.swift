import MusterBase

/// A digest of a document: two nodes with equal digests hold the same entries.
///
/// Layout in bytes: count 4, sum 32.
public struct DocumentDigest: Equatable, Sendable {
  /// The number of entries.
  public var count: UInt32
  /// The sum of all entry ids as 256-bit integers modulo 2^256, which can be updated in constant
  /// time.
  public var sum: Bytes32

  /// `sum` is the sum of the ids of `count` entries, modulo 2^256.
  public init(count: UInt32, sum: Bytes32) {
    self.count = count
    self.sum = sum
  }

  func write(to writer: inout Writer) {
    writer.u32(count)
    writer.append(sum)
  }

  init(reading reader: inout Reader) throws(WireError) {
    count = try reader.u32()
    sum = try reader.bytes32()
  }
}

/// A summary of the entries whose ids share a prefix: a fingerprint or a list of ids (range-based
/// set reconciliation).
///
/// Layout in bytes: depth 1, prefix 8; content 1: 0 and fingerprint 16, or 1, count 1 and the first
/// 8 bytes of each id.
public struct RangeSummary: Equatable, Sendable {
  /// The number of leading bits of `prefix` that define the range, 0 to 60.
  public var depth: UInt8
  /// The shared prefix, left-aligned; bits beyond `depth` are 0.
  public var prefix: UInt64
  /// The fingerprint or the ids of the entries in the range.
  public var content: Content

  /// The form in which the entries of a range are described.
  public enum Content: Equatable, Sendable {
    /// The last 16 bytes of the sum of the ids modulo 2^256, for ranges with many entries.
    case fingerprint([UInt8])
    /// The prefix (`Bytes32.prefix`) of every id, in ascending order, for at most `idLimit`
    /// entries.
    case ids([UInt64])
  }

  /// The length of a fingerprint in bytes.
  public static let fingerprintBytes = 16
  /// The maximum number of ids in a list.
  public static let idLimit = 32
  /// The length of the longest prefix in bits.
  public static let depthLimit: UInt8 = 60

  /// `depth` is at most `depthLimit` bits; the bits of `prefix` beyond `depth` must be 0.
  public init(depth: UInt8, prefix: UInt64, content: Content) {
    self.depth = depth
    self.prefix = prefix
    self.content = content
  }

  /// The size of the encoded summary in bytes.
  public var size: Int {
    switch content {
    case .fingerprint: 10 + Self.fingerprintBytes
    case .ids(let ids): 11 + 8 * ids.count
    }
  }

  func write(to writer: inout Writer) {
    writer.u8(depth)
    writer.u64(prefix)
    switch content {
    case .fingerprint(let bytes):
      precondition(bytes.count == Self.fingerprintBytes)
      writer.u8(0)
      writer.append(bytes)
    case .ids(let ids):
      precondition(ids.count <= Self.idLimit)
      writer.u8(1)
      writer.u8(UInt8(ids.count))
      for id in ids { writer.u64(id) }
    }
  }

  init(reading reader: inout Reader) throws(WireError) {
    depth = try reader.u8()
    guard depth <= Self.depthLimit else { throw .invalidValue }
    prefix = try reader.u64()
    switch try reader.u8() {
    case 0: content = .fingerprint(try reader.array(Self.fingerprintBytes))
    case 1:
      let count = Int(try reader.u8())
      guard count <= Self.idLimit else { throw .tooLong }
      var ids: [UInt64] = []
      for _ in 0..<count { ids.append(try reader.u64()) }
      content = .ids(ids)
    default: throw .invalidValue
    }
  }
}
