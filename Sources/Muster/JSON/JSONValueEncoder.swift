import MusterBase

extension JSONValue {
  /// The encoding of an optional that is nil.
  public enum Nulls: Sendable {
    /// Encoded as `null`, so the records in events and replies always have all their fields.
    case written
    case omitted
  }

  /// The JSON form of an `Encodable` value. Fields keep the order in which they are encoded, which
  /// is the order of the coding keys in synthesised conformances. If encoding throws, the value
  /// contains only the fields encoded until then.
  public init(encoding value: some Encodable, nulls: Nulls = .written) {
    let slot = Slot(nulls)
    try? value.encode(to: ValueEncoder(slot: slot))
    self = slot.value
  }
}

/// The storage of a value while it is being encoded.
private final class Slot {
  enum Content {
    case empty
    case value(JSONValue)
    case array([Slot])
    case object([(String, Slot)])
  }

  let nulls: JSONValue.Nulls
  var content = Content.empty

  init(_ nulls: JSONValue.Nulls) { self.nulls = nulls }

  var value: JSONValue {
    switch content {
    case .empty: .null
    case .value(let value): value
    case .array(let slots): .array(slots.map(\.value))
    case .object(let fields): .object(fields.map { ($0.0, $0.1.value) })
    }
  }

  func becomeObject() {
    if case .object = content { return }  // several containers share one object
    content = .object([])
  }

  func field(_ key: String) -> Slot {
    let slot = Slot(nulls)
    guard case .object(let fields) = content else { return slot }
    content = .object(fields + [(key, slot)])
    return slot
  }

  func element() -> Slot {
    let slot = Slot(nulls)
    guard case .array(let slots) = content else { return slot }
    content = .array(slots + [slot])
    return slot
  }

  func encode(_ value: some Encodable) throws {
    switch value {
    case let value as JSONValue: content = .value(value)
    case let value as Bool: content = .value(.bool(value))
    case let value as String: content = .value(.string(value))
    case let value as Double: content = .value(.number(value))
    case let value as any BinaryInteger: content = .value(.integer(Int64(clamping: value)))
    default: try value.encode(to: ValueEncoder(slot: self))
    }
  }
}

private struct ValueEncoder: Encoder {
  let slot: Slot
  var codingPath: [any CodingKey] { [] }
  var userInfo: [CodingUserInfoKey: Any] { [:] }

  func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
    slot.becomeObject()
    return KeyedEncodingContainer(Keyed<Key>(slot: slot))
  }

  func unkeyedContainer() -> any UnkeyedEncodingContainer {
    slot.content = .array([])
    return Unkeyed(slot: slot)
  }

  func singleValueContainer() -> any SingleValueEncodingContainer { Single(slot: slot) }
}

private struct Keyed<Key: CodingKey>: KeyedEncodingContainerProtocol {
  let slot: Slot
  var codingPath: [any CodingKey] { [] }

  func encodeNil(forKey key: Key) { slot.field(key.stringValue).content = .value(.null) }

  func encode<T: Encodable>(_ value: T, forKey key: Key) throws {
    try slot.field(key.stringValue).encode(value)
  }

  private func encodeOptional(_ value: (some Encodable)?, _ key: Key) throws {
    if let value {
      try encode(value, forKey: key)
    } else if slot.nulls == .written {
      encodeNil(forKey: key)
    }
  }

  func encodeIfPresent(_ value: Bool?, forKey key: Key) throws { try encodeOptional(value, key) }
  func encodeIfPresent(_ value: String?, forKey key: Key) throws { try encodeOptional(value, key) }
  func encodeIfPresent(_ value: Double?, forKey key: Key) throws { try encodeOptional(value, key) }
  func encodeIfPresent(_ value: Int?, forKey key: Key) throws { try encodeOptional(value, key) }
  func encodeIfPresent(_ value: Int64?, forKey key: Key) throws { try encodeOptional(value, key) }
  func encodeIfPresent(_ value: UInt8?, forKey key: Key) throws { try encodeOptional(value, key) }
  func encodeIfPresent(_ value: UInt32?, forKey key: Key) throws { try encodeOptional(value, key) }
  func encodeIfPresent(_ value: UInt64?, forKey key: Key) throws { try encodeOptional(value, key) }

  func encodeIfPresent<T: Encodable>(_ value: T?, forKey key: Key) throws {
    try encodeOptional(value, key)
  }

  func nestedContainer<Nested: CodingKey>(
    keyedBy type: Nested.Type, forKey key: Key
  ) -> KeyedEncodingContainer<Nested> {
    ValueEncoder(slot: slot.field(key.stringValue)).container(keyedBy: type)
  }

  func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
    ValueEncoder(slot: slot.field(key.stringValue)).unkeyedContainer()
  }

  func superEncoder() -> any Encoder { ValueEncoder(slot: slot) }
  func superEncoder(forKey key: Key) -> any Encoder {
    ValueEncoder(slot: slot.field(key.stringValue))
  }
}

private struct Unkeyed: UnkeyedEncodingContainer {
  let slot: Slot
  var codingPath: [any CodingKey] { [] }
  private(set) var count = 0

  init(slot: Slot) { self.slot = slot }

  private mutating func next() -> Slot {
    count += 1
    return slot.element()
  }

  mutating func encodeNil() { next().content = .value(.null) }
  mutating func encode<T: Encodable>(_ value: T) throws { try next().encode(value) }

  mutating func nestedContainer<Key: CodingKey>(
    keyedBy type: Key.Type
  ) -> KeyedEncodingContainer<Key> {
    ValueEncoder(slot: next()).container(keyedBy: type)
  }

  mutating func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
    ValueEncoder(slot: next()).unkeyedContainer()
  }

  mutating func superEncoder() -> any Encoder { ValueEncoder(slot: next()) }
}

private struct Single: SingleValueEncodingContainer {
  let slot: Slot
  var codingPath: [any CodingKey] { [] }

  func encodeNil() { slot.content = .value(.null) }
  func encode<T: Encodable>(_ value: T) throws { try slot.encode(value) }
}
