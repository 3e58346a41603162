import Foundation
import Testing

@Test func theTopHoldsWhatIsDesignedAndNoMore() {
  let allowed = [
    ".ci", ".git", ".gitignore", ".packaging", ".swift-format", "CHANGELOG.md", "CONTRIBUTING.md",
    "LICENSE",
    "Makefile", "Package.swift", "README.md", "Sources", "Tests", "docs",
  ]
  // Build products, which git ignores.
  let ignored = ["Package.resolved", ".swiftpm", "__pycache__", ".DS_Store"]
  let strays = Tree.names(in: "").filter {
    !allowed.contains($0) && !ignored.contains($0) && !$0.hasPrefix(".build")
  }
  #expect(strays.isEmpty, "\(strays)")
}

@Test func nothingBuiltIsTracked() throws {
  let index = Tree.top.appending(path: ".git/index")
  // Without git, or in a linked work tree, there is no index file at this path.
  guard let bytes = try? Data(contentsOf: index) else { return }
  for name in ["Package.resolved", ".build/", ".build-", ".swiftpm/"] {
    #expect(bytes.range(of: Data(name.utf8)) == nil, "\(name) is tracked")
  }
}

@Test func nothingIsLeftForLater() {
  // The words are concatenated, so that the test does not find this file.
  let words = ["TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK"]
  let found = lines { line in
    let all = line.split { !$0.isLetter && !$0.isNumber && $0 != "_" }
    return words.first { all.contains(Substring($0)) }
  }
  #expect(found.isEmpty, "\(found.joined(separator: "\n"))")
}

@Test func noPathOfOneMachineIsWrittenDown() {
  let indices = ["/wo" + "rk/", "/ro" + "ot/", "/ho" + "me/"]
  // The home of a reader of the guide, on a machine that exists while the guide is followed.
  let reader = "/ho" + "me/ada/"
  let found = lines { line in
    let rest = line.replacing(reader, with: "")
    return indices.first { rest.contains($0) }
  }
  #expect(found.isEmpty, "\(found.joined(separator: "\n"))")
}

@Test func decisionsAreNumberedWithoutHoles() {
  let names = Tree.names(in: "docs/decisions").filter { $0.hasSuffix(".md") }
  #expect(!names.isEmpty)
  for (index, name) in names.enumerated() {
    let number = String(index + 1)
    let wanted = String(repeating: "0", count: 4 - number.count) + number + "-"
    #expect(name.hasPrefix(wanted), "\(name) should begin with \(wanted)")
    let lines = Tree.text(of: "docs/decisions/\(name)")?.split(separator: "\n") ?? []
    #expect(lines.first?.hasPrefix("# ") == true, "\(name) has no title")
    for section in ["## Context", "## Decision", "## Cost"] {
      #expect(lines.contains(Substring(section)), "\(name) lacks \(section)")
    }
  }
}

@Test func everyLimitIsExplained() throws {
  let table = try #require(Tree.text(of: "docs/LIMITS.md"))
  let source = try #require(Tree.text(of: "Sources/MusterBase/Limits.swift"))
  let limits = source.split(separator: "\n").compactMap { line -> (String, String)? in
    guard let start = line.range(of: "static let ") else { return nil }
    let sides = line[start.upperBound...].split(separator: " = ", maxSplits: 1)
    guard sides.count == 2 else { return nil }
    return (String(sides[0]), String(sides[1]))
  }
  #expect(limits.count > 10)
  for (name, value) in limits {
    let plain = value.replacing("_", with: "")
    let row = table.split(separator: "\n").first { $0.hasPrefix("| `\(name)` |") }
    let documented = row?.split(separator: "|").dropFirst().first?.replacing(",", with: "")
      .trimmingCharacters(in: .whitespaces)
    #expect(documented == plain, "docs/LIMITS.md should say \(name) is \(value)")
  }
}

/// Formats each line in which `find` finds something as "path:line: finding".
private func lines(where find: (Substring) -> String?) -> [String] {
  Tree.files.flatMap { file in
    file.lines.enumerated().compactMap { number, line in
      find(line).map { "\(file.path):\(number + 1): \($0)" }
    }
  }
}
