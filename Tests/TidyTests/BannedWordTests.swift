import Testing

/// A run of words and marks that pure targets may not contain, and what to use instead.
private struct Ban {
  let pattern: [String]
  let instead: String

  init(_ pattern: String..., instead: String) {
    self.pattern = pattern
    self.instead = instead
  }
}

private let time = "time is an argument: `at now: Instant`"
private let chance = "draw from the PRNG or Entropy that was handed in"
private let plumbing = "return outputs; the shell does the rest"
private let order = "PeerTable or a sorted array: a hashed order differs from run to run"

private let bans = [
  Ban("ContinuousClock", instead: time), Ban("SuspendingClock", instead: time),
  Ban("Date", instead: time), Ban("clock_gettime", instead: time), Ban("sleep", instead: time),
  Ban("usleep", instead: time), Ban(".", "random", "(", instead: chance),
  Ban("randomElement", instead: chance), Ban("shuffled", "(", ")", instead: chance),
  Ban("shuffle", "(", ")", instead: chance),
  Ban("SystemRandomNumberGenerator", instead: chance), Ban("Hasher", instead: chance),
  Ban("Task", "{", instead: plumbing), Ban("Task", ".", instead: plumbing),
  Ban("Task", "(", instead: plumbing), Ban("async", instead: plumbing),
  Ban("await", instead: plumbing), Ban("actor", instead: plumbing),
  Ban("AsyncStream", instead: plumbing), Ban("DispatchQueue", instead: plumbing),
  Ban("Mutex", instead: plumbing), Ban("NSLock", instead: plumbing),
  Ban("Thread", instead: plumbing), Ban("print", "(", instead: plumbing),
  Ban("debugPrint", "(", instead: plumbing), Ban("dump", "(", instead: plumbing),
  Ban("Logger", instead: plumbing), Ban("FileHandle", instead: plumbing),
  Ban("Foundation", instead: plumbing), Ban("nonisolated", "(", "unsafe", instead: plumbing),
  Ban("Dictionary", instead: order), Ban("Set", "<", instead: order),
  Ban("Set", "(", instead: order), Ban("[", ":", "]", instead: order),
]

/// Files of pure targets that may name a hashed collection, each with its reason.
private let hashingFiles: [String] = []

private func findings(in file: TextFile) -> [String] {
  let tokens = Tokens.of(file.text)
  func finding(_ index: Int, _ words: String, _ instead: String) -> String {
    "\(file.path):\(tokens[index].line): \(words): \(instead)"
  }
  var result = bans.flatMap { ban in
    tokens.indices(of: ban.pattern).map { finding($0, ban.pattern.joined(), ban.instead) }
  }
  result += tokens.indices.filter { tokens[$0].text.hasPrefix("NIO") }
    .map { finding($0, String(tokens[$0].text), plumbing) }
  result += dictionaryTypes(tokens).map { finding($0, "[Key: Value]", order) }
  return result
}

/// `[Key: Value]` as a type: a capitalised name behind the bracket and a colon behind the name.
private func dictionaryTypes(_ tokens: [Token]) -> [Int] {
  tokens.indices(of: ["["]).filter { start in
    var next = start + 1
    guard next < tokens.count, tokens[next].text.first?.isUppercase == true else { return false }
    while next + 2 < tokens.count, tokens[next + 1].text == "." { next += 2 }
    return next + 1 < tokens.count && tokens[next + 1].text == ":"
  }
}

@Test func pureTargetsKeepNeitherClockNorChanceNorIO() {
  let found = Tree.sources
    .filter { Layering.pure[$0.target] != nil && !hashingFiles.contains($0.path) }
    .flatMap(findings)
  #expect(found.isEmpty, "\(found.joined(separator: "\n"))")
}

@Test func nothingIsForcedThatCouldBeHandled() {
  let found = Tree.sources.flatMap { file in
    let tokens = Tokens.of(file.text)
    return (tokens.indices(of: ["try", "!"]) + tokens.indices(of: ["as", "!"]))
      .map { "\(file.path):\(tokens[$0].line)" }
  }
  #expect(found.isEmpty, "\(found.joined(separator: "\n"))")
}

@Test func testsOfPureTargetsDoNotSleep() {
  let waiting = ["LabTests", "ShellTests", "TidyTests"]
  let found = Tree.swift
    .filter { $0.path.hasPrefix("Tests/") && !waiting.contains($0.target) }
    .flatMap { file in
      let tokens = Tokens.of(file.text)
      return (tokens.indices(of: [".", "sleep"]) + tokens.indices(of: ["usleep"]))
        .map { "\(file.path):\(tokens[$0].line)" }
    }
  #expect(found.isEmpty, "\(found.joined(separator: "\n"))")
}

@Test(arguments: [
  "let t = ContinuousClock().now", "Task { go() }", "let n = Int.random(in: 0..<9)",
  "for x in all.shuffled() {}", "print(\"hello\")", "var seen = Set<UInt16>()",
  "var table: [NodeID: Link] = [:]", "var table: [Wire.Kind: Link]", "let s = \"\\(Date())\"",
  "func run() async {}", "let loop: NIOLoop", "let d = Dictionary(uniqueKeysWithValues: x)",
])
func plantedWordsAreFound(code: String) {
  #expect(!findings(in: TextFile(path: "Sources/X/Y.swift", text: code)).isEmpty)
}

@Test(arguments: [
  "// Date and Task { are words of this comment", "let s = \"print( Task { Set<\"",
  "struct Flags: OptionSet {}", "let a = [first, second]", "f(a[Limits.links])",
  "/* Mutex /* nested */ NSLock */ let x = 1", "let r = #\"\\(Date())\"#",
  "switch self { case .random: break }", "let c = condition ? [A.b] : [C.d]",
])
func harmlessCodeIsNotFound(code: String) {
  #expect(findings(in: TextFile(path: "Sources/X/Y.swift", text: code)).isEmpty)
}
