import MusterBase
import MusterCrypto
import Testing

/// One file of `docs/vectors`: the examples of one topic.
struct Topic: Sendable {
  /// The file's name without its extension.
  let name: String
  /// The section of the protocol document that specifies the topic.
  let section: Int
  let description: String
  let vectors: [Vector]
}

/// One example: what it is computed from, and how the code under test computes it.
///
/// The expected bytes stand in the block of hex with this name alone, in the file of the topic.
struct Vector: Sendable {
  let name: String
  let description: String
  let inputs: Inputs
  let compute: @Sendable (Inputs) throws -> [UInt8]

  init(
    _ name: String, _ description: String, _ inputs: KeyValuePairs<String, Value>,
    compute: @escaping @Sendable (Inputs) throws -> [UInt8]
  ) {
    self.name = name
    self.description = description
    self.inputs = Inputs(values: inputs.map { ($0.key, $0.value) })
    self.compute = compute
  }
}

/// An input of a vector, as it is written into JSON.
enum Value: Sendable {
  case hex([UInt8])
  /// The bytes of another block of the document.
  case block(String)
  case text(String)
  case number(UInt64)
  case flag(Bool)
  case null
  case list([Value])
  case object([(name: String, value: Value)])
}

/// The inputs of one vector by name, in the order in which they are written.
struct Inputs: Sendable {
  let values: [(name: String, value: Value)]

  private func value(_ name: String) throws -> Value {
    try #require(values.first { $0.name == name }?.value, "there is no input \(name)")
  }

  func bytes(_ name: String) throws -> [UInt8] { try Self.bytes(value(name)) }

  func bytes32(_ name: String) throws -> Bytes32 { try #require(Bytes32(bytes(name))) }

  func secret(_ name: String) throws -> SecretBytes { SecretBytes(try bytes(name)) }

  func identity(_ name: String) throws -> Identity {
    try #require(Identity(seed: try bytes(name)))
  }

  func number(_ name: String) throws -> UInt64 {
    guard case .number(let number) = try value(name) else { throw WrongInput(name: name) }
    return number
  }

  func text(_ name: String) throws -> String {
    guard case .text(let text) = try value(name) else { throw WrongInput(name: name) }
    return text
  }

  func texts(_ name: String) throws -> [String] {
    guard case .list(let list) = try value(name) else { throw WrongInput(name: name) }
    return try list.map { item in
      guard case .text(let text) = item else { throw WrongInput(name: name) }
      return text
    }
  }

  func list(_ name: String) throws -> [Value] {
    guard case .list(let list) = try value(name) else { throw WrongInput(name: name) }
    return list
  }

  func object(_ name: String) throws -> [(name: String, value: Value)] {
    guard case .object(let object) = try value(name) else { throw WrongInput(name: name) }
    return object
  }

  func addresses(_ name: String) throws -> [Address] {
    try texts(name).map { try #require(Address($0)) }
  }

  static func bytes(_ value: Value) throws -> [UInt8] {
    switch value {
    case .hex(let bytes): return bytes
    case .block(let name): return try Document.bytes(name)
    case .text, .number, .flag, .null, .list, .object: throw WrongInput(name: "\(value)")
    }
  }
}

/// An input that is not of the kind that the computation asks for.
struct WrongInput: Error {
  let name: String
}

extension Value {
  /// The value in JSON; byte strings are lower-case hex.
  func json() throws -> String {
    switch self {
    case .hex(let bytes): "\"\(Hex.encode(bytes))\""
    case .block(let name): "\"\(Hex.encode(try Document.bytes(name)))\""
    case .text(let text): Self.quoted(text)
    case .number(let number): "\(number)"
    case .flag(let flag): "\(flag)"
    case .null: "null"
    case .list(let list): "[\(try list.map { try $0.json() }.joined(separator: ", "))]"
    case .object(let object):
      "{"
        + (try object.map { "\(Self.quoted($0.name)): \(try $0.value.json())" }
          .joined(separator: ", ")) + "}"
    }
  }

  static func quoted(_ text: String) -> String {
    let escaped = text.flatMap { $0 == "\"" || $0 == "\\" ? ["\\", $0] : [$0] }
    return "\"" + String(escaped) + "\""
  }
}

extension Topic {
  /// The whole file, with a fixed layout so that its text can be compared.
  func json() throws -> String {
    let items = try vectors.map { vector in
      let inputs = try vector.inputs.values.map {
        "        \(Value.quoted($0.name)): \(try $0.value.json())"
      }
      let body = inputs.isEmpty ? "{}" : "{\n\(inputs.joined(separator: ",\n"))\n      }"
      return """
            {
              "name": \(Value.quoted(vector.name)),
              "description": \(Value.quoted(vector.description)),
              "inputs": \(body),
              "expected": "\(Hex.encode(try Document.bytes(vector.name)))"
            }
        """
    }
    return """
      {
        "description": \(Value.quoted(description)),
        "section": \(section),
        "vectors": [
      \(items.joined(separator: ",\n"))
        ]
      }

      """
  }
}
