import Foundation
import Testing

/// The share of public declarations that must have a doc comment, in percent.
private let requiredCoverage = 95.0

private let types = ["struct", "enum", "class", "protocol", "actor", "typealias", "macro"]
private let members = ["func", "subscript", "var", "let", "init"]
private let modifiers = [
  "static", "final", "mutating", "nonmutating", "indirect", "nonisolated", "override", "lazy",
  "consuming", "borrowing", "convenience", "weak", "unowned",
]

/// The number of public declarations of a file, and those without a doc comment.
private struct Coverage {
  var total = 0
  var bare: [String] = []

  static func + (a: Coverage, b: Coverage) -> Coverage {
    Coverage(total: a.total + b.total, bare: a.bare + b.bare)
  }

  var percent: Double { total == 0 ? 100 : 100 * Double(total - bare.count) / Double(total) }
}

/// The coverage of one file.
///
/// Types, functions, subscripts, properties and initialisers count. Operators do not, since their
/// meaning is that of their protocol, and neither do memberwise initialisers, since each property
/// says what it is. Cases of enums may have a comment of their own but need none.
private func coverage(of file: TextFile) -> Coverage {
  var result = Coverage()
  var isDocumented = false
  let lines = file.lines
  for (index, raw) in lines.enumerated() {
    let line = raw.drop { $0 == " " }
    if line.hasPrefix("///") {
      isDocumented = true
    } else if line.hasPrefix("public ") {
      if let keyword = keyword(of: line), counts(keyword, line, lines[index...]) {
        result.total += 1
        if !isDocumented { result.bare.append("\(file.path):\(index + 1): \(line)") }
      }
      isDocumented = false
    } else if !line.hasPrefix("@") {
      // An attribute may stand between a declaration and its comment; nothing else may.
      isDocumented = false
    }
  }
  return result
}

private func keyword(of line: Substring) -> String? {
  let separators: Set<Character> = [" ", "(", ":", "?", "<"]
  return line.split { separators.contains($0) }.dropFirst().map(String.init)
    .first {
      !modifiers.contains($0) && !$0.hasPrefix("set)") && $0 != "private" && $0 != "package"
    }
}

private func counts(_ keyword: String, _ line: Substring, _ rest: ArraySlice<Substring>) -> Bool {
  if types.contains(keyword) { return true }
  guard members.contains(keyword) else { return false }
  if keyword == "func" {
    let name = line.split(separator: "func ").last?.first
    return name?.isLetter == true
  }
  return keyword != "init" || !onlyAssigns(rest)
}

/// Whether the initialiser that begins here does nothing but fill properties with its arguments.
private func onlyAssigns(_ lines: ArraySlice<Substring>) -> Bool {
  guard let first = lines.first else { return false }
  let indent = first.prefix { $0 == " " }
  if first.hasSuffix("}") {
    let body = first.split(separator: "{").last?.dropLast() ?? ""
    return body.split(separator: ";").allSatisfy(isAssignment)
  }
  guard let opening = lines.firstIndex(where: { $0.hasSuffix("{") }),
    let closing = lines[opening...].firstIndex(of: indent + "}")
  else { return false }
  return lines[(opening + 1)..<closing].allSatisfy(isAssignment)
}

/// `self.name = name`, or a property with a constant.
private func isAssignment(_ line: Substring) -> Bool {
  let text = line.trimmingCharacters(in: .whitespaces)
  if text.allSatisfy({ $0 == " " }) { return true }
  let sides = text.split(separator: " = ", maxSplits: 1)
  guard sides.count == 2 else { return false }
  let name = sides[0].hasPrefix("self.") ? sides[0].dropFirst(5) : sides[0]
  return name.allSatisfy { $0.isLetter || $0.isNumber }
    && sides[1].allSatisfy { $0.isLetter || $0.isNumber || $0 == "_" }
}

@Test func publicDeclarationsAreDocumented() {
  let all = Tree.sources.map(coverage).reduce(Coverage(), +)
  #expect(all.total > 500)
  #expect(
    all.percent >= requiredCoverage,
    "\(all.bare.count) of \(all.total) lack a doc comment:\n\(all.bare.joined(separator: "\n"))")
}

@Test func missingDocumentationIsNoticed() {
  let text = """
    public struct Bare {
      /// Explained.
      public var explained: Int
      public private(set) var plain: Int
      public func silent() {}
      public init() {}
      public init(_ plain: Int) { self.plain = plain }
      public init(
        explained: Int, plain: Int
      ) {
        self.explained = explained
        self.plain = plain
      }
      public init(text: String) {
        plain = text.count
      }
      public static func < (a: Bare, b: Bare) -> Bool { true }
      /// Explained, too.
      @discardableResult
      public mutating func done() -> Int { 0 }
      public static func bare() {}
      public subscript(index: Int) -> Int { 0 }
      public enum Kind { case one, two }
    }
    """
  let found = coverage(of: TextFile(path: "F", text: text))
  #expect(found.total == 9)
  #expect(
    found.bare.map { $0.split(separator: ":")[1] } == ["1", "4", "5", "14", "21", "22", "23"])
}
