import Muster
import MusterSystem

/// Files named by the user.
enum TextFile {
  static func write(_ text: String, to path: String) throws {
    guard let file = fopen(path, "w") else {
      throw MusterError("cannot write \(path)", hint: SystemError.last)
    }
    let isWritten = fputs(text, file) >= 0
    guard fclose(file) == 0, isWritten else {
      throw MusterError("cannot write all of \(path)", hint: SystemError.last)
    }
  }
}
