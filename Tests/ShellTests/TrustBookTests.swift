import Muster
import MusterBase
import MusterStore
import Testing

struct TrustBookTests {
  private let anna = NodeID(bytes32(1))
  private let other = NodeID(bytes32(2))

  @Test func theFirstKeyOfANameIsNewAndThenKnown() {
    var book = TrustBook([])
    #expect(book.noted("anna", anna, at: 10) == .new)
    #expect(book.noted("anna", anna, at: 20) == .known)
    let identity = book.identity(of: anna, name: "anna")
    #expect(identity == known("anna", 1, seen: 10...20))
  }

  @Test func anotherKeyForANameIsReportedOnce() {
    var book = TrustBook([known("anna", 1)])
    #expect(book.noted("anna", other, at: 200) == .changed(from: anna))
    #expect(book.noted("anna", other, at: 201) == .known)
    // Two members that share a name are distinguished by now.
    #expect(book.noted("anna", anna, at: 202) == .known)
  }

  @Test func oneMemberMayHaveSeveralNames() {
    var book = TrustBook([known("anna", 1, verified: true)])
    #expect(book.noted("Anna K.", anna, at: 200) == .new)
    // Verification applies to the key, not to the name.
    #expect(book.identity(of: anna, name: "Anna K.")?.isVerified == true)
    #expect(book.noted("berta", other, at: 200) == .new)
    #expect(book.identity(of: other, name: "berta")?.isVerified == false)
  }

  @Test func aClockThatWentBackMakesNobodyOlder() {
    var book = TrustBook([known("anna", 1, seen: 100...500)])
    #expect(book.noted("anna", anna, at: 50) == .known)
    #expect(book.identity(of: anna, name: "anna") == known("anna", 1, seen: 100...500))
  }

  @Test func idsKeysAndNamesAreUnderstood() {
    let book = TrustBook([known("anna", 1), known("berta", 2), known("anna", 3)])
    #expect(book.keys(matching: "berta") == [other])
    #expect(book.keys(matching: anna.short) == [anna])
    #expect(book.keys(matching: anna.key.hex) == [anna])
    #expect(book.keys(matching: "anna") == [anna, NodeID(bytes32(3))])
    #expect(book.keys(matching: "").isEmpty)
    #expect(book.keys(matching: "ann").isEmpty)
  }

  @Test func aNameIsNoID() {
    let book = TrustBook([known("anna", 1), known(anna.short, 2), known(anna.key.hex, 2)])
    #expect(book.keys(matching: anna.short) == [anna])
    #expect(book.keys(matching: anna.short.uppercased()) == [anna])
    #expect(book.keys(matching: anna.key.hex) == [anna])
    #expect(book.keys(matching: NodeID(bytes32(9)).short).isEmpty)
  }

  @Test(
    arguments: [
      "Gr\u{430}ce", "Grace\u{200B}", "\u{E0041}Grace", "Grace\u{FE0F}", "Gra\u{AD}ce",
      "Grace\u{3164}", "Gr\u{34F}ace", "Grac\u{301}e", "grace", "\u{FF27}race", "Gra ce",
    ])
  func aNameThatLooksLikeAnothersIsReportedOnce(name: String) {
    var book = TrustBook([known("Grace", 1)])
    #expect(book.noted(name, other, at: 200) == .resembles(name: "Grace", of: anna))
    #expect(book.noted(name, other, at: 201) == .known)
    #expect(book.noted("Grace\u{200D}", other, at: 202) == .new)
    // Its own key may have any name.
    #expect(book.noted(name + "\u{200B}", anna, at: 203) == .new)
  }

  @Test(arguments: ["Gracie", "Race", "Грета", "🙂"]) func otherNamesAreNoLookAlikes(name: String) {
    var book = TrustBook([known("Grace", 1), known("🙃", 1)])
    #expect(book.noted(name, other, at: 200) == .new)
  }

  @Test func oneMemberDoesNotEvictTheOthersFromTheStore() async throws {
    let fixture = StoreFixture()
    let store = try await fixture.store()
    let channel = ChannelID(bytes32(7))
    try await store.write([.identity(known("anna", 1, seen: 1...1), channel: channel)])
    let names = (0...2 * TrustBook.limit).map {
      Store.Change.identity(known("guest \($0)", 2, seen: 5...5), channel: channel)
    }
    try await store.write(names)
    let kept = try await store.identities(of: channel)
    #expect(kept.contains { $0.key == anna } && kept.count <= 2 + TrustBook.namesPerKey)
    let book = TrustBook(
      [known("anna", 1, seen: 1...1)]
        + (0..<5000).map {
          known("guest \($0)", 2, seen: 5...5, verified: true)
        })
    #expect(book.identities.count == 1 + TrustBook.namesPerKey)
  }

  @Test func oneMemberDoesNotEvictTheOthers() {
    var book = TrustBook([known("anna", 1, seen: 1...1)])
    for number in 0..<5000 { _ = book.noted("guest \(number)", other, at: 5) }
    #expect(book.identities.count == 1 + TrustBook.namesPerKey)
    #expect(book.keys(matching: "guest 4999") == [other])
    #expect(book.noted("anna", other, at: 6) == .changed(from: anna))
  }

  @Test func everNewNamesAreBoundedAndSpareTheVerified() {
    var book = TrustBook([known("anna", 1, seen: 1...1, verified: true)])
    for number in 0..<5000 {
      #expect(book.noted("guest \(number)", NodeID(bytes32(number + 10)), at: 5) == .new)
    }
    #expect(book.identities.count == 4096)
    #expect(book.identity(of: anna, name: "anna")?.isVerified == true)
    #expect(book.keys(matching: "guest 0").isEmpty)
    #expect(!book.keys(matching: "guest 4999").isEmpty)
  }
}
