/// A word or a punctuation mark of Swift code.
struct Token: Equatable {
  var text: Substring
  /// Counted from 1.
  var line: Int

  var isWord: Bool { text.first.map { $0.isLetter || $0 == "_" } ?? false }
}

/// Splits Swift code into words and punctuation marks, without comments and string literals.
///
/// This is not a parser, but suffices to count lines, match braces and find words. Code inside
/// `\(…)` of a string is kept.
struct Tokens {
  private(set) var all: [Token] = []
  private let characters: [Character]
  private var index = 0
  private var line = 1

  static func of(_ text: String) -> [Token] {
    var scanner = Tokens(characters: Array(text))
    scanner.scan(untilClosing: false)
    return scanner.all
  }

  private init(characters: [Character]) { self.characters = characters }

  private func peek(_ ahead: Int = 0) -> Character? {
    index + ahead < characters.count ? characters[index + ahead] : nil
  }

  private mutating func advance(_ count: Int = 1) {
    for _ in 0..<count where index < characters.count {
      if characters[index].isNewline { line += 1 }
      index += 1
    }
  }

  /// Scans to the end, or to the parenthesis that closes an interpolation.
  private mutating func scan(untilClosing: Bool) {
    var depth = 0
    while let character = peek() {
      if character == "/", peek(1) == "/" {
        skipLine()
      } else if character == "/", peek(1) == "*" {
        skipBlock()
      } else if character == "\"" || character == "#" && startsRawString {
        skipString()
      } else if character.isWhitespace {
        advance()
      } else if isWordCharacter(character) {
        word()
      } else {
        if character == "(" { depth += 1 }
        if character == ")" {
          if depth == 0, untilClosing { return advance() }
          depth -= 1
        }
        all.append(Token(text: Substring(String(character)), line: line))
        advance()
      }
    }
  }

  private func isWordCharacter(_ character: Character) -> Bool {
    character.isLetter || character.isNumber || character == "_"
  }

  private mutating func word() {
    var text = ""
    while let character = peek(), isWordCharacter(character) {
      text.append(character)
      index += 1
    }
    all.append(Token(text: Substring(text), line: line))
  }

  private mutating func skipLine() {
    while let character = peek(), !character.isNewline { advance() }
  }

  private mutating func skipBlock() {
    var depth = 0
    repeat {
      if peek() == "/", peek(1) == "*" {
        depth += 1
        advance(2)
      } else if peek() == "*", peek(1) == "/" {
        depth -= 1
        advance(2)
      } else {
        advance()
      }
    } while depth > 0 && index < characters.count
  }

  private var startsRawString: Bool {
    var ahead = 0
    while peek(ahead) == "#" { ahead += 1 }
    return peek(ahead) == "\""
  }

  private mutating func skipString() {
    var hashes = 0
    while peek() == "#" {
      hashes += 1
      advance()
    }
    let quotes = peek(1) == "\"" && peek(2) == "\"" ? 3 : 1
    advance(quotes)
    while index < characters.count {
      if starts(with: "\\", hashes: hashes) {
        advance(1 + hashes)
        let opensCode = peek() == "("
        advance()
        if opensCode { scan(untilClosing: true) }
      } else if closes(quotes: quotes, hashes: hashes) {
        return advance(quotes + hashes)
      } else {
        advance()
      }
    }
  }

  private func starts(with character: Character, hashes: Int) -> Bool {
    peek() == character && (0..<hashes).allSatisfy { peek(1 + $0) == "#" }
  }

  private func closes(quotes: Int, hashes: Int) -> Bool {
    (0..<quotes).allSatisfy { peek($0) == "\"" }
      && (0..<hashes).allSatisfy { peek(quotes + $0) == "#" }
  }
}

extension Array where Element == Token {
  /// The index of the first token of each such run of words and marks.
  func indices(of pattern: [String]) -> [Int] {
    guard !pattern.isEmpty, count >= pattern.count else { return [] }
    return (0...(count - pattern.count)).filter { start in
      pattern.indices.allSatisfy { self[start + $0].text == pattern[$0] }
    }
  }
}
