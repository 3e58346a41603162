import Testing

/// A word that identifiers must not contain, and the field's term for it (`docs/GLOSSARY.md`).
private struct FormerWord {
  let words: [String]
  let instead: String

  init(_ words: String..., instead: String) {
    self.words = words
    self.instead = instead
  }
}

private let formerWords = [
  FormerWord("picture", "pictures", instead: "frame"),
  FormerWord("sound", "sounds", instead: "audio"),
  FormerWord("place", "places", instead: "index"),
  FormerWord("way", "ways", instead: "path, route"),
  FormerWord("told", instead: "reported, notified, learned"),
  FormerWord("hearing", "hearings", instead: "neighbour report"),
  FormerWord("detour", "detours", instead: "relayed path"),
  FormerWord("knock", "knocks", "knocked", "knocking", instead: "probe: hole punching"),
  FormerWord("posting", "postings", instead: "DHT record"),
  FormerWord("fence", "fences", "fenced", instead: "equivocation, quarantine"),
  FormerWord("errand", "errands", instead: "indirect probe"),
  FormerWord("pulse", "pulses", instead: "path liveness"),
  FormerWord("farewell", "farewells", "goodbye", "goodbyes", instead: "leave"),
  FormerWord("wish", "wishes", instead: "requested resolution, subscription"),
  FormerWord("stranger", "strangers", "visitor", "visitors", instead: "phase of an association"),
  FormerWord("absorb", "absorbs", instead: "apply"),
  FormerWord("obey", "obeys", "obeyed", instead: "execute"),
  FormerWord("attend", "attends", instead: "serve"),
  FormerWord("excuse", "excused", instead: "exempt"),
  FormerWord("strike", "strikes", instead: "inject"),
  FormerWord("calm", "calms", instead: "heal"),
  FormerWord("outlook", instead: "reachability report"),
  FormerWord("examination", instead: "diagnostics"),
  FormerWord("judgement", "judgements", instead: "decision"),
  FormerWord("ticket", "tickets", instead: "invite credential"),
]

/// Runs of words in which a former word is permitted, as a term of the field or in its ordinary
/// sense: PictureID (RFC 7741), Picture Loss Indication (RFC 4585), ALSA's sound devices.
private let ordinaryRuns = [
  ["picture", "id"], ["picture", "loss"], ["sound", "device"], ["sound", "devices"],
  ["sound", "card"], ["in", "place"], ["either", "way"], ["both", "ways"],
]

/// Former names of more than one word, as identifiers begin.
private let formerNames: [(name: String, instead: String)] = [
  ("PathRace", "path comparison"), ("pathRace", "path comparison"),
  ("settleAll", "recompute"), ("seekOwnWay", "direct-path probing"),
]

private func formerWords(in file: TextFile) -> [String] {
  Tokens.of(file.text).filter(\.isWord).compactMap { token in
    instead(of: String(token.text)).map { "\(file.path):\(token.line): \(token.text): \($0)" }
  }
}

/// The field's term for a former word in `identifier`; nil if it has none.
private func instead(of identifier: String) -> String? {
  if let former = formerNames.first(where: { identifier.hasPrefix($0.name) }) {
    return former.instead
  }
  let words = Identifier.words(of: identifier)
  let suspects = words.indices.filter { index in
    !ordinaryRuns.contains { run in
      words[index...].starts(with: run) || words[..<index].last == run[0] && words[index] == run[1]
    }
  }
  return formerWords.first { former in
    suspects.contains { former.words.contains(words[$0]) }
  }?.instead
}

/// Splits identifiers into words.
enum Identifier {
  /// The lower-case words: last, picture, id for `lastPictureID`; seek, set for `SEEK_SET`.
  static func words(of identifier: String) -> [String] {
    let all = Array(identifier)
    var words = [""]
    for (index, character) in all.enumerated() {
      let before = index > 0 ? all[index - 1] : nil
      let after = index + 1 < all.count ? all[index + 1] : nil
      // A capital begins a word, and so does the last one of a run such as ID in `IDList`.
      let isStart =
        character.isUppercase
        && (before?.isUppercase != true || after?.isLowercase == true)
      if isStart || character == "_" { words.append("") }
      if character.isLetter { words[words.count - 1] += character.lowercased() }
    }
    return words.filter { !$0.isEmpty }
  }
}

@Test func identifiersUseTheFieldsTerms() {
  let found = Tree.swift.filter { $0.target != "TidyTests" }.flatMap(formerWords)
  #expect(found.isEmpty, "\(found.joined(separator: "\n"))")
}

@Test(arguments: [
  "let pictureCount = 1", "struct DetourTable {}", "func knockAgain() {}", "var isFenced = false",
  "case farewell", "let SOUND_RATE = 1", "func seekOwnWay() {}", "PathRace.run()",
  "settleAllEntries()", "f(place: 1)", "let knownWays: [Int]", "enum Outlook {}",
])
func plantedFormerWordsAreFound(code: String) {
  #expect(!formerWords(in: TextFile(path: "Sources/X/Y.swift", text: code)).isEmpty)
}

@Test(arguments: [
  "var pictureID: UInt16", "case pictureLoss", "struct SoundDevice {}",
  "let attendee = Role.attendee",
  "// A knock on the way.", "let s = \"no pictures\"", "let always = true", "func replace() {}",
  "let defence = 1", "sealInPlace(&x)", "let wayland = false", "var placeholder = 0",
])
func ordinaryIdentifiersAreNotFound(code: String) {
  #expect(formerWords(in: TextFile(path: "Sources/X/Y.swift", text: code)).isEmpty)
}

// MARK: Comments

/// The beginnings that no sentence has: those without a subject; "Also", which follows the subject;
/// "Tells", where "Whether" suffices.
private let headless = [
  "Who ", "Whoever ", "Whom ", "Whose ", "Of whom ", "To whom ", "What is ", "What was ",
  "What has ", "What comes ", "What goes ", "Also ", "Tells that ", "Tells whether ",
]

/// Phrases without a technical meaning, and those that English has other words for: "or if", "even
/// if"; a flag says, a closure returns and a symptom shows whether something is so.
private let phrases = [
  "for ever", "is told of", "are told of", "has done with", "also if", "tells that",
  "tells whether",
]

private func headlessComments(in file: TextFile) -> [String] {
  var result: [String] = []
  // A comment that continues the one above is judged by its sentences, not by its lines.
  var before = "."
  for (number, line) in file.lines.enumerated() {
    guard let comment = comment(of: line, kind: file.kind) else {
      before = "."
      continue
    }
    let isStart = before.isEmpty || ".:;".contains(before.last ?? ".")
    let starts = headless.filter {
      isStart && comment.hasPrefix($0) || comment.contains(". \($0)")
    }
    result += (starts + bannedPhrases(in: comment, after: before))
      .map { "\(file.path):\(number + 1): \($0)" }
    before = comment
  }
  return result
}

/// The banned phrases in a line of a comment; one may begin with the last word of the line above.
private func bannedPhrases(in comment: String, after before: String) -> [String] {
  let last = before.split(separator: " ").last ?? ""
  return phrases.filter { contains($0, in: "\(last) \(comment)") }
}

/// Whether `text` has the phrase as whole words.
private func contains(_ phrase: String, in text: String) -> Bool {
  text.ranges(of: phrase).contains { range in
    range.upperBound == text.endIndex || !text[range.upperBound].isLetter
  }
}

/// The text of a line that is a comment; nil for code.
private func comment(of line: Substring, kind: String) -> String? {
  let text = line.drop { $0 == " " }
  let marker = ["py", "sh", "awk"].contains(kind) ? "#" : "//"
  guard text.hasPrefix(marker) else { return nil }
  return String(text.drop { "/#! ".contains($0) })
}

@Test func commentsAreWholeSentences() {
  let kinds = ["swift", "c", "h", "py", "js", "sh", "awk"]
  let found = Dictionary(
    grouping: Tree.files.filter { kinds.contains($0.kind) }.flatMap { file in
      headlessComments(in: file).map { (file.target, $0) }
    }, by: \.0)
  for (target, all) in found.sorted(by: { $0.key < $1.key }) {
    #expect(
      all.isEmpty, "\(target): \(all.count)\n\(all.map(\.1).joined(separator: "\n"))")
  }
}

@Test(arguments: [
  "/// Who speaks.", "// It waits. Whoever asks gets it.", "/// Of whom nothing is known.",
  "  // What is left goes.", "/// Keeps it for ever.", "/// Done.\n/// What was sent.",
  "/// Also a late one.", "// Nil at the end, also if it is early.", "/// Tells whether it is on.",
  "/// `isOn` tells that it is on.", "/// `isOn` tells\n/// whether it is on.",
])
func plantedHeadlessCommentsAreFound(text: String) {
  #expect(!headlessComments(in: TextFile(path: "Sources/X/Y.swift", text: text)).isEmpty)
}

@Test(arguments: [
  "/// The member who speaks.", "let s = \"Who are you?\"", "/// Decides\n/// who sends.",
  "/// The peer that asks,\n/// Who is a name here.", "// Whole seconds.",
  "/// Once for every peer.", "/// A late one, also known as a repeat.",
  "/// The node tells the peer that it leaves.", "/// `isOn` says whether it is on.",
])
func wholeSentencesAreNotFound(text: String) {
  #expect(headlessComments(in: TextFile(path: "Sources/X/Y.swift", text: text)).isEmpty)
}
