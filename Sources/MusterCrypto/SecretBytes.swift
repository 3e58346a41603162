import CSodium

/// Initialises libsodium once, before its first use.
enum Sodium {
  static let isReady: Bool = {
    // A negative result means that there is no source of randomness, without which no key is safe.
    precondition(sodium_init() >= 0, "libsodium cannot be initialised")
    return true
  }()
}

/// A buffer of secret bytes, wiped on release of the last reference and never shown in a
/// description.
///
/// The bytes never change after initialisation, so values that share an instance can be copied.
public final class SecretBytes: @unchecked Sendable {
  /// The kind of memory that holds the bytes.
  public enum Storage: Sendable {
    /// Locked pages between guard pages (`sodium_malloc`), for secrets that live as long as the
    /// node.
    case guarded
    /// Heap memory, wiped on release, for keys of handshakes and sessions. There are thousands of
    /// these, and the five system calls of `sodium_malloc` would cost more than a Diffie-Hellman
    /// computation.
    case heap
  }

  /// The number of bytes.
  public let count: Int
  private let base: UnsafeMutableRawPointer
  private let storage: Storage

  /// Allocates `count` zero bytes and lets `fill` write them.
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

  /// Copies the bytes; the caller's array is not wiped.
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

  /// Gives access to the bytes, which must not be stored or copied beyond the call.
  public func withUnsafeBytes<R>(_ body: (UnsafeRawBufferPointer) -> R) -> R {
    withExtendedLifetime(self) { body(UnsafeRawBufferPointer(start: base, count: count)) }
  }

  /// The first `length` bytes as a separate secret.
  public func prefix(_ length: Int) -> SecretBytes {
    precondition(length <= count)
    return SecretBytes(length, in: storage) { target in
      target.copyMemory(from: UnsafeRawBufferPointer(start: base, count: length))
    }
  }
}

extension SecretBytes: Equatable {
  /// Compares in constant time.
  public static func == (a: SecretBytes, b: SecretBytes) -> Bool {
    a.count == b.count && sodium_memcmp(a.base, b.base, a.count) == 0
  }
}

extension SecretBytes: CustomStringConvertible, CustomReflectable {
  /// A text that states the length only.
  public var description: String { "(\(count) secret bytes)" }
  /// An empty mirror, so that `dump` and debuggers do not show the bytes.
  public var customMirror: Mirror { Mirror(self, children: []) }
}

/// Compares byte strings in a time that does not depend on where they differ.
public enum ConstantTime {
  /// Whether the strings are equal; the time taken reveals only their lengths.
  public static func equal(_ a: some Collection<UInt8>, _ b: some Collection<UInt8>) -> Bool {
    guard a.count == b.count else { return false }
    var difference: UInt8 = 0
    for (x, y) in zip(a, b) { difference |= x ^ y }
    return difference == 0
  }
}
