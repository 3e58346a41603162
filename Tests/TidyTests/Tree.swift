import Foundation

/// A text file of the repository.
struct TextFile: Sendable {
  /// Relative to the top of the repository, with slashes.
  let path: String
  let text: String

  var lines: [Substring] { text.split(separator: "\n", omittingEmptySubsequences: false) }

  /// The target that a path under Sources or Tests belongs to.
  var target: String { path.split(separator: "/").dropFirst().first.map(String.init) ?? "" }

  /// The file name's extension without the dot; empty if there is none.
  var kind: String {
    let name = path.split(separator: "/").last ?? ""
    return name.contains(".") ? String(name.split(separator: ".").last ?? "") : ""
  }
}

/// The repository that these tests were built from.
enum Tree {
  static let top = URL(filePath: #filePath).resolvingSymlinksInPath()
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

  /// The extensions of files that people write.
  private static let written: [String] = [
    "swift", "c", "h", "modulemap", "md", "sh", "py", "awk", "js", "css", "html", "json",
  ]

  /// Written files under Sources, Tests, docs and .ci, and those at the top; no test data.
  static let files: [TextFile] = {
    let folders = ["Sources", "Tests", "docs", ".ci"]
    let inside = folders.flatMap { paths(under: $0) }
    let atTop = names(in: "").filter { !isFolder($0) }
    return (inside + atTop).filter(isWritten).compactMap { path in
      text(of: path).map { TextFile(path: path, text: $0) }
    }
  }()

  static var sources: [TextFile] {
    files.filter { $0.path.hasPrefix("Sources/") && $0.kind == "swift" }
  }

  static var swift: [TextFile] { files.filter { $0.kind == "swift" } }

  static func text(of path: String) -> String? {
    try? String(contentsOf: top.appending(path: path), encoding: .utf8)
  }

  /// The names in a folder, sorted; empty when there is no such folder.
  static func names(in folder: String) -> [String] {
    let path = top.appending(path: folder).path(percentEncoded: false)
    return ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted()
  }

  static func isFolder(_ path: String) -> Bool {
    var result: ObjCBool = false
    let full = top.appending(path: path).path(percentEncoded: false)
    return FileManager.default.fileExists(atPath: full, isDirectory: &result) && result.boolValue
  }

  private static func paths(under folder: String) -> [String] {
    names(in: folder).filter { !isLeftOut($0) }.flatMap { name -> [String] in
      let path = folder + "/" + name
      return isFolder(path) ? paths(under: path) : [path]
    }
  }

  private static func isLeftOut(_ name: String) -> Bool {
    name.hasPrefix(".build") || name == ".swiftpm" || name == "__pycache__"
      || ["Vectors", "Corpus", "FailCases"].contains(name)
  }

  private static func isWritten(_ path: String) -> Bool {
    let file = TextFile(path: path, text: "")
    // Scripts such as .ci/run and the Makefile have no extension.
    return written.contains(file.kind) || file.kind == "" && !path.hasSuffix("LICENSE")
  }
}
