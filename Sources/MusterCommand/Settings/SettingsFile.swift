import Muster
import MusterBase
import MusterSystem

/// The content of a settings file.
struct SettingsFile {
  let path: String
  let text: String
  /// Whether users other than the owner may read the file.
  let isOpenToOthers: Bool

  /// The most that a file may hold, in bytes; settings take a few hundred.
  private static let limit = 1 << 20

  /// Reads the file that the option names, else the one in `MUSTER_CONFIG`, else
  /// `muster/config.toml` in the XDG configuration directory. Only the last may be missing, for
  /// which the result is nil.
  static func read(
    option: String?, environment: [String: String]
  ) throws(MusterError) -> SettingsFile? {
    let named = option ?? environment["MUSTER_CONFIG"]
    guard let path = named ?? standardPath(environment) else { return nil }
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else {
      if named == nil, errno == ENOENT || errno == ENOTDIR { return nil }
      throw unreadable(path, SystemError.last)
    }
    defer { close(descriptor) }
    var status = stat()
    let isOpenToOthers =
      fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
      && FilePermissions.othersRead(status.st_mode) && !isCredential(path, environment)
    guard let bytes = TextFile.bytes(of: descriptor, limit: limit) else {
      throw unreadable(path, SystemError.last)
    }
    guard bytes.count <= limit else { throw unreadable(path, "it is too long") }
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw unreadable(path, "it is not UTF-8")
    }
    return SettingsFile(path: path, text: text, isOpenToOthers: isOpenToOthers)
  }

  /// Whether systemd has handed the file over. It is readable by the service alone, and where an
  /// access list says so, the permission bits show another thing.
  private static func isCredential(_ path: String, _ environment: [String: String]) -> Bool {
    environment["CREDENTIALS_DIRECTORY"].map { path.hasPrefix($0 + "/") } ?? false
  }

  private static func standardPath(_ environment: [String: String]) -> String? {
    if let base = environment["XDG_CONFIG_HOME"], base.hasPrefix("/") {
      return base + "/muster/config.toml"
    }
    guard let home = environment["HOME"], !home.isEmpty else { return nil }
    return home + "/.config/muster/config.toml"
  }

  private static func unreadable(_ path: String, _ reason: String) -> MusterError {
    MusterError(
      "cannot read the settings file \(Words.shown(path)) (\(reason))",
      hint: "mend it, or name another one with --config", kind: .usage)
  }

  /// A warning if others can read a secret that is among the file's settings.
  func warning(about settings: SettingsLayer) -> MusterError? {
    let secrets = Setting.all.filter { setting in
      guard setting.isSecret, let value = settings.values[setting.name] else { return false }
      return value.list?.contains { $0.contains("://") } ?? true
    }
    guard isOpenToOthers, let secret = secrets.first else { return nil }
    return MusterError(
      "others on this machine can read the \(secret.name) in \(Words.shown(path))",
      hint: "chmod 600 it")
  }
}
