import Foundation
import Glibc
import Muster
import MusterBase
import MusterCrypto
import MusterStore
import Testing

/// Commands to a running node through the control socket of its data directory.
struct ControlSocketTests {
  private func start(_ fixture: StoreFixture) async throws -> MusterNode {
    let configuration = fixture.configuration(.open(ChannelKey.fromName("open")), "open")
    return try await MusterNode.start(configuration)
  }

  @discardableResult
  private func perform(
    _ verb: Administration.Request.Verb, _ channel: String?, in fixture: StoreFixture,
    _ change: (inout Administration.Request) -> Void = { _ in }
  ) async throws -> Administration.Reply {
    var request = Administration.Request(verb)
    request.channel = channel
    change(&request)
    return try await Administration.perform(request, data: fixture.path)
  }

  @Test(.timeLimit(.minutes(1)), arguments: [0, 6])
  func aRunningNodeDoesWhatIsAsked(depth: Int) async throws {
    let fixture = StoreFixture(depth: depth)
    // The socket file of a killed node is no obstacle.
    try fixture.write([], to: fixture.path + "/control.sock")
    let node = try await start(fixture)
    var status = stat()
    #expect(stat(fixture.path + "/control.sock", &status) == 0)
    #expect(status.st_mode & 0o777 == 0o600)
    #expect(status.st_mode & S_IFMT == S_IFSOCK)

    let guest = NodeID(bytes32(3)).key.hex
    try await perform(.create, "lab", in: fixture)
    try await perform(.grant, "lab", in: fixture) {
      $0.member = guest
      $0.role = .attendee
    }
    let shown = try #require(try await perform(.show, "lab", in: fixture).channels.first)
    #expect(shown.isOwner)
    #expect(shown.members.contains { $0.key == guest && $0.role == "attendee" })
    #expect(try await perform(.invite, "lab", in: fixture).invite?.hasPrefix("muster://") == true)
    #expect(
      try await Set(perform(.list, nil, in: fixture).channels.map(\.name)) == ["lab", "open"])
    await #expect(throws: MusterError.self) { try await perform(.create, "lab", in: fixture) }
    await #expect(throws: MusterError.self) { try await perform(.show, "none", in: fixture) }

    await node.stop()
    #expect(stat(fixture.path + "/control.sock", &status) != 0)
  }

  @Test(.timeLimit(.minutes(1))) func anAnsweredChangeIsOnTheDisk() async throws {
    let fixture = StoreFixture()
    let node = try await start(fixture)
    try await perform(.create, "lab", in: fixture)
    for number in 1...20 {
      try await perform(.revoke, "lab", in: fixture) { $0.member = NodeID(bytes32(number)).key.hex }
      // The state of the disk if the node were killed now.
      let keys = try await keysOnDisk(fixture)
      #expect(keys == number + 1, "after revocation \(number)")
    }
    await node.stop()
  }

  /// The number of channel keys on the disk, read from a copy of the files while the node runs.
  private func keysOnDisk(_ fixture: StoreFixture) async throws -> Int? {
    let copy = StoreFixture()
    for suffix in ["", "-wal"] {
      let file = fixture.database + suffix
      guard FileManager.default.fileExists(atPath: file) else { continue }
      try copy.write(try fixture.read(file), to: copy.database + suffix)
    }
    return try await copy.store().channels(named: "lab").last?.keys.count
  }

  @Test(.timeLimit(.minutes(1))) func junkHarmsNobody() async throws {
    let fixture = StoreFixture()
    let node = try await start(fixture)
    var prng = PRNG(seed: 3)
    let junk: [[UInt8]] =
      [
        [], [0x0A], Array("{}\n".utf8), Array("{\"verb\":\"dance\"}\n".utf8),
        Array("{\"verb\":\"show\",\"peers\":[],\"rendezvous\":[]".utf8),
        [UInt8](repeating: 0x7B, count: 200_000),
      ] + (0..<20).map { _ in prng.bytes(prng.below(400)) + [0x0A] }
    for bytes in junk { try send(bytes, to: fixture) }
    // Idle clients do not hold up the others.
    let idle = try (0..<20).map { _ in try connect(to: fixture) }
    #expect(try await perform(.list, nil, in: fixture).channels.count == 1)
    for descriptor in idle { close(descriptor) }
    await node.stop()
  }

  @Test(.timeLimit(.minutes(1))) func aDirectoryInUseWithoutASocketIsAClearError()
    async throws
  {
    let fixture = StoreFixture()
    let directory = try #require(try DataDirectory.open(fixture.path))
    do {
      try await perform(.list, nil, in: fixture)
      Issue.record("it was done")
    } catch let error as MusterError {
      #expect(error.message.contains("in use"))
    }
    withExtendedLifetime(directory) {}
  }

  private func connect(to fixture: StoreFixture) throws -> Int32 {
    let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let path = Array((fixture.path + "/control.sock").utf8)
    try #require(path.count < 108)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path) }
    let result = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    try #require(result == 0)
    return descriptor
  }

  private func send(_ bytes: [UInt8], to fixture: StoreFixture) throws {
    let descriptor = try connect(to: fixture)
    // The node may close the connection before everything is sent.
    _ = Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL))
    shutdown(descriptor, Int32(SHUT_WR))
    close(descriptor)
  }
}
