import Glibc
import MusterBase
import MusterCore
import MusterMedia
import MusterPipeline
import MusterSystem
import Testing

/// Recordings of members that have sent little.
struct RecorderTests {
  private let link = LinkID(channel: ChannelID(.zero), peer: NodeID(.zero))

  private func frame(_ number: UInt32, bytes: Int = 100) -> ReceivedFrame {
    ReceivedFrame(
      layer: 0, temporalLayer: 0, data: [UInt8](repeating: 1, count: bytes),
      isKeyframe: number == 0, timestamp: number * 3000,
      size: VideoSize(width: 320, height: 180), capturedAt: nil, completedAt: .zero, delay: .zero,
      isShown: true)
  }

  /// The sizes in bytes of the recordings of a member that ended as `body` says; `isTaken`: there
  /// is a symbolic link under the name of its video.
  private func recorded(
    isTaken: Bool = false, _ body: (Recorder) -> Void
  ) async throws -> [String: Int] {
    var template = Array("/tmp/muster-recorder-XXXXXX".utf8CString)
    _ = try #require(mkdtemp(&template))
    let folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    let (base, target) = ("\(folder)/Ada-\(link.peer.short)", "\(folder)/nowhere")
    if isTaken { symlink(target, base + ".ivf") }
    let recorder = try Recorder(directory: folder)
    recorder.setName("Ada", of: link)
    let worker = recorder.start { Issue.record($0) }
    body(recorder)
    recorder.stop()
    await worker.ended()
    var sizes: [String: Int] = [:]
    for ending in ["ivf", "wav"] {
      let path = base + (isTaken ? "-2." : ".") + ending
      var status = stat()
      if stat(path, &status) == 0 {
        sizes[ending] = Int(status.st_size)
        #expect(status.st_mode & 0o777 == 0o600)
      }
      unlink(path)
    }
    #expect(access(target, F_OK) != 0)
    unlink(base + ".ivf")
    rmdir(folder)
    return sizes
  }

  /// Until the first sender report nothing says when a frame was captured.
  @Test(arguments: [true, false])
  func whatEndsBeforeItsFirstSenderReportIsKept(endsFirst: Bool) async throws {
    let stream = MemberStream(link, .camera)
    let sizes = try await recorded { recorder in
      for number in 0..<9 {
        _ = recorder.add(frame(UInt32(number)), of: stream, name: "camera")
      }
      recorder.add(
        DecodedAudio(pcm: [Int16](repeating: 5, count: 960), timestamp: 0, capturedAt: nil),
        from: link)
      if endsFirst { recorder.end(link) }
    }
    #expect(sizes == ["ivf": 32 + 9 * 112, "wav": 44 + 2 * 960])
  }

  @Test func framesThatWaitAreBoundedInBytes() async throws {
    let sizes = try await recorded { recorder in
      for number in 0..<9 {
        _ = recorder.add(
          frame(UInt32(number), bytes: 1 << 20), of: MemberStream(link, .camera), name: "camera")
      }
    }
    #expect(sizes["ivf"] == 32 + 4 * (12 + 1 << 20))
  }

  /// Another name is taken where something has that name, be it a link that leads nowhere.
  @Test func aNameThatIsTakenIsLeftAlone() async throws {
    let sizes = try await recorded(isTaken: true) { recorder in
      for number in 0..<9 {
        _ = recorder.add(frame(UInt32(number)), of: MemberStream(link, .camera), name: "camera")
      }
    }
    #expect(sizes == ["ivf": 32 + 9 * 112])
  }
}
