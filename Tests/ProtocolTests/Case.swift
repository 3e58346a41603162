import Testing

/// One file of `docs/vectors` with cases of behaviour: what follows from the same inputs at every
/// node.
struct CaseTopic: Sendable {
  /// The file's name without its extension.
  let name: String
  /// The section of the protocol document that specifies the behaviour.
  let section: Int
  let description: String
  let cases: [Case]
  /// How the code under test computes the result.
  let compute: @Sendable (Inputs) throws -> Value
}

/// One case; unlike the bytes of a `Vector`, its result is given here.
struct Case: Sendable {
  let name: String
  let description: String
  let inputs: Inputs
  let expected: Value

  init(
    _ name: String, _ description: String, _ inputs: KeyValuePairs<String, Value>,
    expected: Value
  ) {
    self.name = name
    self.description = description
    self.inputs = Inputs(values: inputs.map { ($0.key, $0.value) })
    self.expected = expected
  }
}

extension CaseTopic {
  /// The whole file, with a fixed layout so that its text can be compared.
  func json() throws -> String {
    let items = try cases.map { one in
      let inputs = try one.inputs.values.map {
        "        \(Value.quoted($0.name)): \(try $0.value.json())"
      }
      return """
            {
              "name": \(Value.quoted(one.name)),
              "description": \(Value.quoted(one.description)),
              "inputs": {
        \(inputs.joined(separator: ",\n"))
              },
              "expected": \(try one.expected.json())
            }
        """
    }
    return """
      {
        "description": \(Value.quoted(description)),
        "section": \(section),
        "cases": [
      \(items.joined(separator: ",\n"))
        ]
      }

      """
  }
}
