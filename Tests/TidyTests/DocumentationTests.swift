import Testing

/// Public functions without a `///` line today. A change may lower it; then lower the number.
private let undocumentedFunctions = 70

private struct Declaration {
  var index: String
  var isType: Bool
}

private let types = ["struct", "enum", "class", "protocol", "actor", "typealias", "macro"]
private let modifiers = [
  "static", "final", "mutating", "nonmutating", "indirect", "nonisolated", "override", "lazy",
  "consuming", "borrowing", "convenience", "weak", "unowned",
]

/// The public declarations of a file that no doc comment stands on.
///
/// Types, functions and subscripts count. Properties, initialisers and operators do not: names,
/// labels and types say what they are, and a comment is for what those leave open.
private func undocumented(in file: TextFile) -> [Declaration] {
  var result: [Declaration] = []
  var isDocumented = false
  for (index, raw) in file.lines.enumerated() {
    let line = raw.drop { $0 == " " }
    if line.hasPrefix("///") {
      isDocumented = true
    } else if line.hasPrefix("public ") {
      let position = "\(file.path):\(index + 1)"
      if !isDocumented,
        let bare = declaration(line, isNested: raw.hasPrefix(" "), at: position)
      {
        result.append(bare)
      }
      isDocumented = false
    } else if !line.hasPrefix("@") {
      // An attribute may stand between a declaration and its comment; nothing else may.
      isDocumented = false
    }
  }
  return result
}

private func declaration(
  _ line: Substring, isNested: Bool, at position: String
) -> Declaration? {
  var words = line.split(whereSeparator: { $0 == " " || $0 == "(" || $0 == ":" }).dropFirst()
  while let word = words.first,
    modifiers.contains(String(word)) || word.hasPrefix("set)") || word == "private"
  {
    words = words.dropFirst()
  }
  guard let keyword = words.first.map(String.init) else { return nil }
  if types.contains(keyword) {
    // A nested type is explained by what it is nested in.
    return isNested ? nil : Declaration(index: "\(position): \(line)", isType: true)
  }
  guard keyword == "func" || keyword == "subscript" else { return nil }
  let name = words.dropFirst().first ?? ""
  if keyword == "func", name.first?.isLetter != true { return nil }
  return Declaration(index: "\(position): \(line)", isType: false)
}

@Test func everyPublicTypeIsExplained() {
  let bare = Tree.sources.flatMap(undocumented).filter(\.isType).map(\.index)
  #expect(bare.isEmpty, "\(bare.joined(separator: "\n"))")
}

@Test func noMorePublicFunctionsGoUnexplained() {
  let bare = Tree.sources.flatMap(undocumented).filter { !$0.isType }.map(\.index)
  #expect(
    bare.count <= undocumentedFunctions, "\(bare.count):\n\(bare.joined(separator: "\n"))")
}

@Test func missingDocumentationIsNoticed() {
  let text = """
    public struct Bare {
      /// Said.
      public var said: Int
      public private(set) var plain: Int
      public func unsaid() {}
      public init() {}
      public static func < (a: Bare, b: Bare) -> Bool { true }
      /// Said too.
      @discardableResult
      public mutating func done() -> Int { 0 }
      public static func bare() {}
    }
    """
  let found = undocumented(in: TextFile(path: "F", text: text))
  #expect(found.map(\.isType) == [true, false, false])
  #expect(found.map(\.index).map { $0.prefix(4) } == ["F:1:", "F:5:", "F:11"])
}
