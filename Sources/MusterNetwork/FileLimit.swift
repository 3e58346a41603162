import MusterBase
import MusterSystem

/// How many files and sockets this process may have open at once.
package enum FileLimit {
  /// What a node needs: event loops, sockets, its store, devices, and recordings.
  private static let needed: rlim_t = 64
  /// What a command asks for, with more recordings and pages than anyone has.
  private static let wanted: rlim_t = 1024

  /// Throws if the limit is too low for a node. A call page's event loop without files ends the
  /// process, so this is asked before.
  package static func check() throws(MusterError) {
    guard let current, current.rlim_cur < needed else { return }
    throw MusterError(
      "this process may have only \(current.rlim_cur) files open, and \(needed) are needed",
      hint: "raise the limit: ulimit -n \(wanted)")
  }

  /// Starts the event loop of a node. Throws if that takes more files than there are left.
  package static func loop(_ name: String) throws(MusterError) -> PollLoop {
    guard let loop = PollLoop(name) else {
      throw MusterError(
        "this process has no free files left", hint: "raise the limit: ulimit -n \(wanted)")
    }
    return loop
  }

  /// Raises a low limit as far as the process may, which affects all of it.
  package static func raise() {
    guard var limit = current, limit.rlim_cur < wanted else { return }
    limit.rlim_cur = min(wanted, limit.rlim_max)
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
  }

  private static var current: rlimit? {
    var limit = rlimit()
    return getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 ? limit : nil
  }
}
