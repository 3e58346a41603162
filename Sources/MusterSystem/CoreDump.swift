import Glibc

/// The image of a process that the kernel writes when it crashes.
package enum CoreDump {
  /// Forbids it to this process and its children: it would contain keys and passphrases that are
  /// being read. Keys themselves are in locked pages, which it leaves out anyway.
  package static func forbid() {
    var none = rlimit(rlim_cur: 0, rlim_max: 0)
    setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &none)
  }
}
