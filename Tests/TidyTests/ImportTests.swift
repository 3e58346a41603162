import Testing

private func imports(of file: TextFile) -> [(module: String, line: Int)] {
  let tokens = Tokens.of(file.text)
  let kinds = ["struct", "class", "enum", "protocol", "func", "var", "let", "typealias"]
  return tokens.indices.compactMap { index in
    guard tokens[index].text == "import" else { return nil }
    var next = index + 1
    if next < tokens.count, kinds.contains(String(tokens[next].text)) { next += 1 }
    guard next < tokens.count, tokens[next].isWord, tokens[next].line == tokens[index].line
    else { return nil }
    return (String(tokens[next].text), tokens[next].line)
  }
}

/// The targets and dependencies that `engine("Name", ["A", "B"])` lines of a manifest declare.
private func engines(in manifest: String) -> [String: [String]] {
  var result: [String: [String]] = [:]
  let calls = manifest.split(separator: "engine(", omittingEmptySubsequences: false)
  for call in calls.dropFirst() {
    let quoted = call.prefix { $0 != ")" }.split(separator: "\"", omittingEmptySubsequences: false)
    let names = quoted.indices.filter { $0 % 2 == 1 }.map { String(quoted[$0]) }
    guard let name = names.first, name.hasPrefix("Muster") else { continue }
    result[name] = Array(names.dropFirst())
  }
  return result
}

@Test func everyImportIsAllowedByTheLayering() {
  let table = Layering.pure.merging(Layering.shells) { pure, _ in pure }
  var findings: [String] = []
  for file in Tree.sources {
    guard let allowed = table[file.target] else {
      findings.append("\(file.path): target \(file.target) is not in the layering")
      continue
    }
    let exceptions = Layering.exceptions[file.path] ?? []
    for (module, line) in imports(of: file) where !(allowed + exceptions).contains(module) {
      findings.append("\(file.path):\(line): \(file.target) may not import \(module)")
    }
  }
  #expect(findings.isEmpty, "\(findings.joined(separator: "\n"))")
}

@Test func theManifestGrantsEnginesNoMoreThanTheLayering() throws {
  let manifest = engines(in: try #require(Tree.text(of: "Package.swift")))
  #expect(manifest.keys.sorted() == Layering.pure.keys.sorted())
  for (name, granted) in manifest.sorted(by: { $0.key < $1.key }) {
    let surplus = granted.filter { !(Layering.pure[name] ?? []).contains($0) }
    #expect(surplus.isEmpty, "\(name) is granted \(surplus)")
  }
}

@Test func eachCLibraryIsSeenByOneTargetOnly() {
  let strays = Tree.sources.flatMap { file in
    imports(of: file).filter { seen in
      Layering.rooms[seen.module].map { $0 != file.target } ?? false
    }.map { "\(file.path):\($0.line): \($0.module)" }
  }
  #expect(strays.isEmpty, "\(strays.joined(separator: "\n"))")
}

@Test func testsUsePublicInterfacesOnly() {
  let found = Tree.swift.flatMap { file in
    let tokens = Tokens.of(file.text)
    return tokens.indices(of: ["@", "testable"]).map { "\(file.path):\(tokens[$0].line)" }
  }
  #expect(found.isEmpty, "\(found.joined(separator: "\n"))")
}

@Test func plantedImportsAreFound() {
  let text = """
    import A
    @preconcurrency import B // import C
    import struct D.E
    let s = "import F"
    """
  let found = imports(of: TextFile(path: "Sources/X/Y.swift", text: text))
  #expect(found.map(\.module) == ["A", "B", "D"])
  #expect(found.map(\.line) == [1, 2, 3])
  let manifest = "engine(\n  \"MusterX\", [\"MusterA\", \"CB\"]),\nengine(\"MusterY\", [])"
  #expect(engines(in: manifest) == ["MusterX": ["MusterA", "CB"], "MusterY": []])
}
