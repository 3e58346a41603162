import CSodium

/// libsodium, initialised once before its first use.
enum Sodium {
  static let isReady: Bool = {
    // -1 means that no source of randomness could be opened; nothing may run without one.
    precondition(sodium_init() >= 0, "libsodium cannot be initialised")
    return true
  }()
}

/// Bytes that are wiped when nobody holds them any more, and that no description shows.
///
/// Immutable once made, so that values which share it may be copied freely.
public final class SecretBytes: @unchecked Sendable {
  /// Where the bytes live.
  public enum Storage: Sendable {
    /// Locked pages between guard pages (`sodium_malloc`): for secrets that live as long as the
    /// node.
    case guarded
    /// The heap, wiped at the end: for keys of handshakes and sessions, of which there are
    /// thousands; five system calls for each would cost more than its Diffie-Hellman.
    case heap
  }

  public let count: Int
  private let base: UnsafeMutableRawPointer
  private let storage: Storage

  /// Makes `count` bytes, which `fill` writes; it is handed zeros.
  public init(
    _ count: Int, in storage: Storage, fill: (UnsafeMutableRawBufferPointer) -> Void
  ) {
    precondition(Sodium.isReady && count > 0)
    self.count = count
    self.storage = storage
    switch storage {
    case .guarded:
      guard let memory = sodium_malloc(count) else { preconditionFailure("out of locked memory") }
      base = memory
    case .heap: base = .allocate(byteCount: count, alignment: 16)
    }
    sodium_memzero(base, count)
    fill(UnsafeMutableRawBufferPointer(start: base, count: count))
    if storage == .guarded { sodium_mprotect_readonly(base) }
  }

  public convenience init(_ bytes: [UInt8], in storage: Storage = .guarded) {
    self.init(bytes.count, in: storage) { $0.copyBytes(from: bytes) }
  }

  deinit {
    switch storage {
    case .guarded: sodium_free(base)  // makes the pages writable and wipes them itself
    case .heap:
      sodium_memzero(base, count)
      base.deallocate()
    }
  }

  /// Lends the bytes; they must not be kept or copied beyond the call.
  public func withUnsafeBytes<R>(_ body: (UnsafeRawBufferPointer) -> R) -> R {
    withExtendedLifetime(self) { body(UnsafeRawBufferPointer(start: base, count: count)) }
  }

  /// The first `length` bytes as a secret of their own.
  public func prefix(_ length: Int) -> SecretBytes {
    precondition(length <= count)
    return SecretBytes(length, in: storage) { target in
      target.copyMemory(from: UnsafeRawBufferPointer(start: base, count: length))
    }
  }
}

extension SecretBytes: Equatable {
  /// Compared in constant time.
  public static func == (a: SecretBytes, b: SecretBytes) -> Bool {
    a.count == b.count && sodium_memcmp(a.base, b.base, a.count) == 0
  }
}

extension SecretBytes: CustomStringConvertible, CustomReflectable {
  public var description: String { "(\(count) secret bytes)" }
  public var customMirror: Mirror { Mirror(self, children: []) }
}

/// Comparison whose time tells nothing of where two byte strings differ.
public enum ConstantTime {
  public static func equal(_ a: some Collection<UInt8>, _ b: some Collection<UInt8>) -> Bool {
    guard a.count == b.count else { return false }
    var difference: UInt8 = 0
    for (x, y) in zip(a, b) { difference |= x ^ y }
    return difference == 0
  }
}
