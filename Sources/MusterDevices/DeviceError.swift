import MusterBase
import MusterSystem

/// The error for an unusable device or file, with advice for the user.
public struct DeviceError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The failure, with the name of the device or file.
  public let what: String
  /// Advice for the user.
  public let hint: String
  /// Whether the request is invalid regardless of the devices present; the command then exits with
  /// code 2.
  public let isMisuse: Bool
  /// Whether the device is in use, by another program or by this one.
  public let isBusy: Bool

  public init(what: String, hint: String, isMisuse: Bool = false, isBusy: Bool = false) {
    self.what = what
    self.hint = hint
    self.isMisuse = isMisuse
    self.isBusy = isBusy
  }

  /// The error in the form `what: hint`.
  public var description: String { "\(what): \(hint)" }

  /// The error of a failed call on a file; `code` is an errno.
  static func file(_ path: String, _ code: Int32) -> DeviceError {
    let hint =
      switch code {
      case ENOENT: "check the path"
      case EACCES, EPERM: "check its permissions, or choose another place"
      case ENOSPC, EDQUOT: "make room on that disk, or choose another place"
      case EISDIR: "name a file, not a directory"
      case EROFS: "choose a place that can be written"
      default: "check the path and the disk"
      }
    return DeviceError(what: "\(path): \(SystemError.text(of: code))", hint: hint)
  }
}

extension MusterError {
  /// The error of a device or file.
  package init(_ error: DeviceError) {
    self.init(error.what, hint: error.hint, kind: error.isMisuse ? .usage : .failure)
  }
}
