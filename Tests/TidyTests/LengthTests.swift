import Testing

/// The current maxima. A change may lower them, and may raise them only with a reason.
private enum Ratchet {
  static let columns = 100
  /// The limit for lines with text for people, which is easier to search for in one piece.
  static let columnsWithText = 120
  static let fileLines = 400
  /// The files that may be longer, each with its limit.
  static let longFiles: [String: Int] = [:]
  static let functionLines = 60
  /// The functions that may be longer, as "path name", each with its limit.
  static let longFunctions: [String: Int] = [:]
}

private let code = ["swift", "c", "h", "js", "sh", "py", "awk", "modulemap"]

@Test func linesFitInAHundredColumns() {
  let long = Tree.files.filter { code.contains($0.kind) }.flatMap { file in
    file.lines.enumerated().filter { $0.element.count > limit(of: $0.element) }
      .map { "\(file.path):\($0.offset + 1): \($0.element.count) columns" }
  }
  #expect(long.isEmpty, "\(long.joined(separator: "\n"))")
}

private func limit(of line: Substring) -> Int {
  let isComment = line.drop { $0 == " " }.hasPrefix("//")
  let hasText = !isComment && line.contains { "\"'`".contains($0) }
  return hasText ? Ratchet.columnsWithText : Ratchet.columns
}

@Test func filesStayOneThing() {
  let long = Tree.files.filter { code.contains($0.kind) }.compactMap { file -> String? in
    let limit = Ratchet.longFiles[file.path] ?? Ratchet.fileLines
    return file.lines.count > limit + 1 ? "\(file.path): \(file.lines.count - 1) lines" : nil
  }
  #expect(long.isEmpty, "\(long.joined(separator: "\n"))")
}

@Test func functionsStayAboutOneScreen() {
  let long = Tree.swift.flatMap { file in
    Function.all(in: Tokens.of(file.text)).compactMap { function -> String? in
      let limit = Ratchet.longFunctions["\(file.path) \(function.name)"] ?? Ratchet.functionLines
      guard function.lines > limit else { return nil }
      return "\(file.path):\(function.line): \(function.name): \(function.lines) lines"
    }
  }
  #expect(long.isEmpty, "\(long.joined(separator: "\n"))")
}

@Test func noExceptionOutlivesItsReason() {
  let files = Tree.files.filter { $0.lines.count - 1 > Ratchet.fileLines }.map(\.path)
  for path in Ratchet.longFiles.keys { #expect(files.contains(path)) }
  let functions = Tree.swift.flatMap { file in
    Function.all(in: Tokens.of(file.text)).filter { $0.lines > Ratchet.functionLines }
      .map { "\(file.path) \($0.name)" }
  }
  for name in Ratchet.longFunctions.keys { #expect(functions.contains(name)) }
}

/// A function, initialiser or deinitialiser that has a body.
private struct Function: Equatable {
  var name: String
  var line: Int
  /// The number of lines from that of the name to that of the closing brace.
  var lines: Int

  static func all(in tokens: [Token]) -> [Function] {
    tokens.indices.compactMap { function(at: $0, in: tokens) }
  }

  private static func function(at start: Int, in tokens: [Token]) -> Function? {
    let word = tokens[start].text
    guard word == "func" || isInitializer(at: start, in: tokens) else { return nil }
    guard let open = bodyStart(after: start, in: tokens) else { return nil }
    var depth = 0
    for index in open..<tokens.count {
      if tokens[index].text == "{" { depth += 1 }
      if tokens[index].text == "}" { depth -= 1 }
      guard depth == 0 else { continue }
      let name = word == "func" ? tokens[start + 1].text : word
      return Function(
        name: String(name), line: tokens[start].line,
        lines: tokens[index].line - tokens[start].line + 1)
    }
    return nil
  }

  /// `init` that is declared rather than called: nothing before it that it could be a member of.
  private static func isInitializer(at start: Int, in tokens: [Token]) -> Bool {
    guard tokens[start].text == "init" || tokens[start].text == "deinit" else { return false }
    return start == 0 || tokens[start - 1].text != "."
  }

  /// The brace that opens the body; nil for a requirement of a protocol.
  private static func bodyStart(after start: Int, in tokens: [Token]) -> Int? {
    var depth = 0
    let declarations = ["func", "var", "let", "init", "case", "static", "mutating", "public"]
    for index in (start + 1)..<max(tokens.count, start + 1) {
      switch tokens[index].text {
      case "(", "[": depth += 1
      case ")", "]": depth -= 1
      case "{" where depth == 0: return index
      case "}" where depth == 0: return nil
      case let word where depth == 0 && declarations.contains(String(word)): return nil
      default: break
      }
    }
    return nil
  }
}

@Test func functionsAreMeasured() {
  let text = """
    protocol P {
      func required(_ x: Int) -> [Int]
      init()
    }
    func short() { call { inner() } }
    struct S {
      init(_ f: () -> Void = { brace() }) {
        self = .init()
      }
      func long<T>(
        _ x: T
      ) -> String where T: P {
        "}}"  // }
      }
    }
    """
  let found = Function.all(in: Tokens.of(text))
  #expect(found.map(\.name) == ["short", "init", "long"])
  #expect(found.map(\.lines) == [1, 3, 5])
}
