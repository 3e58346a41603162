import Foundation
import Testing

/// The program in `docs/example`, as it was built beside the tests.
@Test func theExampleInTheDocumentationRuns() throws {
  let top = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()
  let indices =
    [Bundle.main.bundleURL, Bundle.main.bundleURL.deletingLastPathComponent()]
    + [".build/debug", ".build-gate/debug"].map { top.appending(path: $0) }
  let program = indices.map { $0.appending(path: "muster-example") }
    .first { FileManager.default.isExecutableFile(atPath: $0.path) }
  guard let program else {
    Issue.record("muster-example is built with the tests")
    return
  }
  let process = Process()
  process.executableURL = program
  let pipe = Pipe()
  process.standardOutput = pipe
  try process.run()
  let output = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
  process.waitUntilExit()
  #expect(process.terminationStatus == 0)
  #expect(output.contains("Hello, Berta.") && output.hasSuffix("done\n"), "\(output)")
}
