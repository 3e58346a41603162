import Muster
import MusterSystem

/// The call page in the desktop's browser.
///
/// Other users of the machine can read the command line of every process, and whoever knows the
/// page's address has the call. The browser is therefore given a file that only this user can read,
/// which leads to the page.
struct Browser: Sendable {
  private let file: String

  /// Opens a page; nil without a desktop or a directory for the file.
  static func open(_ url: String) -> Browser? {
    guard isAtHand else { return nil }
    let name = "muster-page-\(UInt32.random(in: 0 ... .max)).html"
    let folders = [environment("XDG_RUNTIME_DIR"), environment("TMPDIR"), "/tmp"]
    for case let folder? in folders {
      let file = "\(folder)/\(name)"
      do { try TextFile.write(secret: leading(to: url), toNew: file) } catch { continue }
      if ChildProcess.start("xdg-open", [file], output: nil) != nil { return Browser(file: file) }
      unlink(file)
    }
    return nil
  }

  /// Removes the file, at the end of the node: a browser may take long to start.
  func close() { unlink(file) }

  private static var isAtHand: Bool {
    environment("DISPLAY") != nil || environment("WAYLAND_DISPLAY") != nil
  }

  /// An HTML document that leads on at once. The address consists of characters that need no
  /// escaping.
  private static func leading(to url: String) -> String {
    """
    <!DOCTYPE html>
    <meta charset="utf-8">
    <meta name="referrer" content="no-referrer">
    <meta http-equiv="refresh" content="0; url=\(url)">
    <title>Muster</title>
    <a href="\(url)">The call page</a>

    """
  }

  private static func environment(_ name: String) -> String? {
    guard let value = getenv(name) else { return nil }
    let text = String(cString: value)
    return text.isEmpty ? nil : text
  }
}
