import MusterBase
import MusterWire

/// A fuzz target: code that processes hostile bytes.
struct FuzzTarget: Sendable {
  var name: String
  var run: @Sendable ([UInt8]) -> Void

  static let all: [FuzzTarget] = [
    FuzzTarget(name: "datagram", run: datagram),
    FuzzTarget(name: "announce", run: announcement),
    FuzzTarget(name: "entry", run: entry),
    FuzzTarget(name: "invite", run: InviteTarget.run),
    FuzzTarget(name: "control", run: control),
    FuzzTarget(name: "rtp", run: rtp),
    FuzzTarget(name: "rtcp", run: rtcp),
    FuzzTarget(name: "text", run: text),
    FuzzTarget(name: "link", run: LinkTarget.run),
    FuzzTarget(name: "congestion", run: CongestionTarget.run),
    FuzzTarget(name: "discovery", run: DiscoveryTarget.run),
    FuzzTarget(name: "rendezvous", run: RendezvousTarget.run),
    FuzzTarget(name: "document", run: DocumentTarget.run),
    FuzzTarget(name: "gossip", run: GossipTarget.run),
    FuzzTarget(name: "channel", run: ChannelTarget.run),
    FuzzTarget(name: "video", run: VideoTarget.run),
    FuzzTarget(name: "audio", run: AudioTarget.run),
  ]
}

private func datagram(_ bytes: [UInt8]) {
  _ = DatagramKind(of: bytes)
  if let envelope = try? RelayEnvelope(decoding: bytes) {
    check(
      RelayEnvelope.header(envelope.direction, envelope.member) + envelope.datagram == bytes,
      "an envelope comes back")
  }
  if let feedback = try? CongestionFeedback(decoding: bytes) {
    check(
      (try? CongestionFeedback(decoding: feedback.encoded())) == feedback, "feedback comes back")
    check((1...CongestionFeedback.limit).contains(feedback.arrivals.count), "a bounded report")
  }
  guard PayloadKind(of: bytes) == .path else { return }
  if let message = try? PathMessage(decoding: bytes) {
    check(message.encoded() == bytes, "a path message comes back")
  }
}

private func announcement(_ bytes: [UInt8]) {
  if let challenge = try? Challenge(decoding: bytes) {
    check(challenge.encoded() == bytes, "a challenge comes back")
  }
  if let announcement = try? Announcement(decoding: bytes) {
    check(
      (try? Announcement(decoding: announcement.encoded())) == announcement,
      "an announce comes back")
  }
}

private func entry(_ bytes: [UInt8]) {
  if let genesis = try? Genesis(decoding: bytes) {
    check((try? Genesis(decoding: genesis.encoded())) == genesis, "a genesis comes back")
  }
  guard let entry = try? Entry(decoding: bytes) else { return }
  check((try? Entry(decoding: entry.encoded())) == entry, "an entry comes back")
  guard case .presence(let presence) = entry.body else { return }
  let shown = DisplayText.sanitized(presence.name, limit: Limits.nameBytes)
  check(shown.utf8.count <= Limits.nameBytes, "a shown name is bounded")
}

private func control(_ bytes: [UInt8]) {
  guard let messages = try? Control.decode(bytes) else { return }
  check((try? Control.decode(Control.encode(messages))) == messages, "messages come back")
}

private func rtp(_ bytes: [UInt8]) {
  guard let packet = try? RTPPacket(decoding: bytes) else { return }
  guard let again = try? RTPPacket(decoding: packet.encoded()) else {
    fatalError("what was written cannot be read")
  }
  check(again.header == packet.header, "a header comes back")
  check(again.payload.elementsEqual(packet.payload), "a payload comes back")
  if let redundant = try? RedundantAudio(decoding: packet.payload) {
    check(redundant.encoded().elementsEqual(packet.payload), "copies come back")
  }
  var reader = Reader(packet.payload)
  guard (try? VP8Descriptor(reading: &reader)) != nil else { return }
  let frame = reader.rest()
  if let size = VP8FrameHeader.keyframeSize(frame) {
    check(VP8FrameHeader.isKeyframe(frame), "only keyframes have a size")
    check((1...16383).contains(size.width) && (1...16383).contains(size.height), "14 bits")
  }
}

private func rtcp(_ bytes: [UInt8]) {
  guard let packets = try? RTCPPacket.decode(bytes) else { return }
  let written = RTCPPacket.encode(packets)
  guard let again = try? RTCPPacket.decode(written) else {
    fatalError("what was written cannot be read")
  }
  check(again.count == packets.count, "no packet is lost")
}

private func text(_ bytes: [UInt8]) {
  let text = String(decoding: bytes, as: UTF8.self)
  if let address = Address(text) {
    check(Address(address.description) == address, "an address comes back")
  }
  if let size = VideoSize(text) { check(size.pixels > 0, "a frame has pixels") }
  if let bytes = Hex.decode(text) {
    check(Hex.encode(bytes) == text.lowercased(), "hexadecimal comes back")
  }
  let shown = DisplayText.sanitized(text, limit: Limits.nameBytes)
  check(shown.utf8.count <= Limits.nameBytes, "a shown name is bounded")
  check(!DisplayText.fileName(text).contains("/"), "a file name stays in its folder")
}
