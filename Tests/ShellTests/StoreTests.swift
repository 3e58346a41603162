import Foundation
import Muster
import MusterBase
import MusterCore
import MusterCrypto
import MusterMesh
import MusterWire
import Testing

/// A data directory of its own, removed at the end.
private func withDirectory(_ body: (DataDirectory) throws -> Void) throws {
  let path = NSTemporaryDirectory() + "muster-store-\(UInt64.random(in: 0 ... .max))"
  defer { try? FileManager.default.removeItem(atPath: path) }
  try body(try #require(try DataDirectory.open(path)))
}

private func secret(_ byte: UInt8) throws -> ChannelKey {
  try #require(ChannelKey(secret: [UInt8](repeating: byte, count: 32)))
}

struct StoreTests {
  @Test func whatIsKeptIsThereAgain() throws {
    try withDirectory { directory in
      let key = try secret(1)
      var channel = StoredChannel(id: key.channelID, name: "lab", createdAt: 7)
      channel.keys = [EpochKey(number: 0, key: key)]
      channel.peers = ["192.0.2.7:4711", "[2001:db8::1]:1"]
      let (first, second) = (Bytes32.zero, try #require(Bytes32([UInt8](repeating: 9, count: 32))))
      do {
        let store = try Store.open(directory)
        try store.save(channel)
        try store.apply([
          .keep(entry: [1, 2], id: first, channel: channel.id),
          .keep(entry: [3], id: second, channel: channel.id),
          .shown(second, channel: channel.id),
          .key(EpochKey(number: 1, key: try secret(2)), channel: channel.id),
        ])
      }
      let store = try Store.open(directory)
      let known = try #require(try store.channel(named: "lab"))
      #expect(known.id == channel.id && known.peers == channel.peers && known.createdAt == 7)
      #expect(known.keys.map(\.number) == [0, 1])
      #expect(try store.entries(of: channel.id).sorted { $0.count > $1.count } == [[1, 2], [3]])
      #expect(try store.unshown(in: channel.id) == [first])
      try store.apply([.forget([first], channel: channel.id)])
      #expect(try store.entries(of: channel.id) == [[3]])
    }
  }

  @Test func nobodyElseCanReadIt() throws {
    try withDirectory { directory in
      _ = try Store.open(directory)
      let file = directory.path + "/muster.sqlite"
      let mode = try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions]
      #expect(mode as? Int == 0o600)
    }
  }

  @Test func aDamagedFileIsSaidToBe() throws {
    try withDirectory { directory in
      let file = directory.path + "/muster.sqlite"
      try Data(repeating: 0x5A, count: 8192).write(to: URL(fileURLWithPath: file))
      let error = #expect(throws: MusterError.self) { try Store.open(directory) }
      #expect(error?.message.contains("damaged") ?? false)
      #expect(try Data(contentsOf: URL(fileURLWithPath: file)).count == 8192)
    }
  }

  @Test func namesWithNewKeysAreNoticed() throws {
    let (one, other) = (NodeID(.zero), try secret(3).channelID.key)
    var book = TrustBook([])
    #expect(book.noted("anna", one, at: 1) == .new)
    #expect(book.noted("anna", one, at: 2) == .known)
    #expect(book.noted("anna", NodeID(other), at: 3) == .changed(from: one))
    #expect(book.keys(matching: "anna").count == 2)
  }
}

struct AdministrationTests {
  private func perform(
    _ verb: Administration.Request.Verb, in path: String,
    _ change: (inout Administration.Request) -> Void = { _ in }
  ) async throws -> Administration.Reply {
    var request = Administration.Request(verb)
    request.channel = "crew"
    change(&request)
    return try await Administration.perform(request, data: path)
  }

  @Test func aChannelIsCreatedSharedAndItsMembersRemoved() async throws {
    let path = NSTemporaryDirectory() + "muster-admin-\(UInt64.random(in: 0 ... .max))"
    defer { try? FileManager.default.removeItem(atPath: path) }
    let made = try await perform(.create, in: path)
    #expect(made.channels.first?.isOwner ?? false)
    let reply = try await perform(.invite, in: path) { $0.role = .consumer }
    let invite = try Invite(url: try #require(reply.invite))
    let bytes = try #require(invite.grant)
    let entry = try Entry(decoding: bytes.dropLast(Entry.signatureBytes))
    guard case .grant(let grant) = entry.body else {
      Issue.record("an invite holds a grant")
      return
    }
    #expect(grant.role == .consumer && grant.isBearer)
    let member = try #require(Identity(seed: [UInt8](repeating: 4, count: 32))).id
    _ = try await perform(.grant, in: path) {
      $0.member = member.key.hex
      $0.role = .presenter
    }
    var shown = try await perform(.show, in: path)
    #expect(shown.channels.first?.members.contains { $0.role == "presenter" } ?? false)
    _ = try await perform(.revoke, in: path) { $0.member = member.key.hex }
    shown = try await perform(.show, in: path)
    #expect(shown.channels.first?.epoch == 1)
    #expect(!(shown.channels.first?.members.contains { $0.role == "presenter" } ?? true))
    let code = try await perform(.verify, in: path) { $0.member = member.key.hex }.code
    #expect(code?.split(separator: " ").map(\.count) == [5, 5, 5, 5, 5])
  }

  @Test func whatCannotBeDoneIsSaid() async throws {
    let path = NSTemporaryDirectory() + "muster-admin-\(UInt64.random(in: 0 ... .max))"
    defer { try? FileManager.default.removeItem(atPath: path) }
    await #expect(throws: MusterError.self) { try await perform(.show, in: path) }
    _ = try await perform(.create, in: path)
    await #expect(throws: MusterError.self) { try await perform(.create, in: path) }
    await #expect(throws: MusterError.self) {
      try await perform(.revoke, in: path) { $0.member = "nobody" }
    }
    let owner = try await perform(.show, in: path).channels[0].owner
    await #expect(throws: MusterError.self) {
      try await perform(.revoke, in: path) { $0.member = owner }
    }
  }
}

/// The program in `docs/example`, as it was built beside the tests.
@Test func theExampleInTheDocumentationRuns() throws {
  let products = Bundle.main.bundleURL.deletingLastPathComponent()
  let candidates = [Bundle.main.bundleURL, products].map {
    $0.appendingPathComponent("muster-example")
  }
  let top = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent()
  let built = ["release", "debug"].map {
    top.appendingPathComponent(".build/\($0)/muster-example")
  }
  let found = (candidates + built).first { FileManager.default.isExecutableFile(atPath: $0.path) }
  let process = Process()
  process.executableURL = try #require(found, "muster-example is built with the tests")
  let pipe = Pipe()
  process.standardOutput = pipe
  try process.run()
  let output = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
  process.waitUntilExit()
  #expect(process.terminationStatus == 0)
  #expect(output.contains("Hello, Berta.") && output.hasSuffix("done\n"), "\(output)")
}
