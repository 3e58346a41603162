/// The search for the word that a mistyped one stands for.
enum Suggestion {
  /// The word nearest to a mistyped one: at most one edit per four characters after the prefix
  /// away, but always one; nil if there is none. Of equally near words the first by the alphabet.
  static func nearest(
    to word: String, among words: some Sequence<String>, after prefix: String = ""
  ) -> String? {
    let limit = max(1, (word.count - prefix.count) / 4)
    // Words of very different length are not near, and the table of `edits` grows with both.
    let near = words.filter { abs($0.count - word.count) <= limit }.sorted()
      .map { (distance: edits(word, $0), word: $0) }
    return near.filter { $0.distance <= limit }.min { $0.distance < $1.distance }?.word
  }

  /// The fewest edits that make one word the other: characters inserted, deleted or replaced, and
  /// neighbours swapped, none of them edited twice (optimal string alignment).
  static func edits(_ first: String, _ second: String) -> Int {
    let (first, second) = (Array(first), Array(second))
    var rows = [Array(0...second.count)]
    for (i, a) in first.enumerated() {
      var row = [i + 1]
      for (j, b) in second.enumerated() {
        var cost = min(rows[i][j] + (a == b ? 0 : 1), rows[i][j + 1] + 1, row[j] + 1)
        if i > 0, j > 0, a == second[j - 1], b == first[i - 1] {
          cost = min(cost, rows[i - 1][j - 1] + 1)
        }
        row.append(cost)
      }
      rows.append(row)
    }
    return rows[first.count][second.count]
  }
}
