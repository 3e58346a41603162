import MusterBase
import MusterMedia
import MusterWire

/// The video streams of a sender, fed with packets in any order, of any stream and layer, with any
/// descriptor, and with any announcement.
///
/// Promises: frames are complete, bounded and of a known layer; requests and reports are bounded;
/// the layer that a stream reports ends before another begins.
enum VideoTarget {
  static func run(_ bytes: [UInt8]) {
    var program = Program(bytes)
    var now = Instant(nanoseconds: 1_000_000_000)
    var streams = IncomingStreams()
    var sequence = program.u16()
    var timestamp = program.u32()
    while !program.isAtEnd {
      switch program.u8() % 9 {
      case 0:
        now = now + program.duration()
        for (stream, output) in streams.tick(at: now) {
          verify([output], of: stream, &streams, now)
        }
      case 1:
        let stream = stream(&program)
        verify(streams.requestKeyframe(of: stream, at: now), of: stream, &streams, now)
      case 2:
        let report = SenderReport(
          ssrc: program.u32(), ntpTime: program.u64(), rtpTime: program.u32(),
          packets: program.u32(), octets: program.u32(), reports: [])
        streams.receive(report, at: now)
      case 3:
        streams.setRoundTrip(program.duration())
        check(streams.reportBlocks(at: now).count <= 31, "reports fit in a packet")
      case 4:
        // Far outside the window.
        sequence = program.u16()
        timestamp = program.u32()
        now = now + .milliseconds(1)
      case 5: announce(&program, &streams, now)
      default:
        sequence &+= UInt16(program.u8() & 7)
        if program.bit() { timestamp &+= 3000 }
        let packet = packet(&program, sequence: sequence, timestamp: timestamp)
        guard let stream = PayloadType.video(of: packet.header.payloadType)?.stream else {
          continue
        }
        verify(streams.receive(packet, of: stream, at: now), of: stream, &streams, now)
      }
    }
  }

  private static func stream(_ program: inout Program) -> StreamID {
    StreamID.all[program.below(StreamID.all.count)]
  }

  private static func announce(
    _ program: inout Program, _ streams: inout IncomingStreams, _ now: Instant
  ) {
    let stream = stream(&program)
    let layer = VideoLayer(size: VideoSize(width: 640, height: 360), framesPerSecond: 30)
    let offer = StreamOffer(stream, isMuted: program.bit(), layers: program.bit() ? [layer] : [])
    let requested = VideoRequest(width: program.u16(), height: program.u16())
    let before = streams[stream]?.layer
    let (change, hasEnded) = streams.expect(
      stream, program.bit() ? offer : nil, requested, isAllowed: program.bit(), at: now)
    if let change { check(change.from == before && change.to == nil, "a layer ends once") }
    check(!hasEnded || streams[stream] == nil, "a withdrawn stream is forgotten")
  }

  private static func packet(
    _ program: inout Program, sequence: UInt16, timestamp: UInt32
  ) -> RTPPacket {
    let bits = program.u8()
    // One more than there are, so that some packets belong to no stream.
    let layer = program.below(Limits.videoStreams * Limits.spatialLayers + 1)
    let header = RTPHeader(
      marker: bits & 1 == 1, payloadType: PayloadType.videoBase + UInt8(layer), sequence: sequence,
      timestamp: timestamp, ssrc: UInt32(layer))
    var writer = Writer()
    if bits & 0x80 == 0 {
      VP8Descriptor(
        isNonReference: bits & 2 != 0, isFrameStart: bits & 4 != 0,
        pictureID: UInt16(program.u8()), tl0PicIdx: program.u8() & 7, temporalLayer: bits >> 3 & 3,
        isLayerSync: bits & 0x20 != 0, keyIndex: 0
      ).write(to: &writer)
      // A keyframe's own header, or that of an inter frame.
      let key: [UInt8] = [0x10, 2, 0, 0x9D, 1, 0x2A, 0x80, 2, 0x68, 1]
      if bits & 4 != 0 { writer.append(bits & 0x40 != 0 ? key : [0x11, 2, 0]) }
    }
    writer.append(program.bytes())
    return RTPPacket(header: header, payload: writer.bytes[...])
  }

  private static func verify(
    _ outputs: [VideoReceiver.Output], of stream: StreamID, _ streams: inout IncomingStreams,
    _ now: Instant
  ) {
    for output in outputs {
      switch output {
      case .frame(let frame):
        check(!frame.data.isEmpty && frame.data.count <= Limits.frameBytes, "frames are bounded")
        check((0..<Limits.spatialLayers).contains(frame.layer), "layers are known")
        check(VP8FrameHeader.isKeyframe(frame.data) == frame.isKeyframe, "keyframes are told apart")
        let before = streams[stream]?.layer
        let showing = streams.show(frame, of: stream)
        if let change = showing?.change { check(change.from == before, "layers follow each other") }
      case .nack(_, let sequences):
        check(!sequences.isEmpty && sequences.count <= Limits.nackEntries, "requests are bounded")
      case .requestKeyframe: break
      }
    }
  }
}

/// An audio jitter buffer fed with packets of any number and time.
///
/// Promises: every call yields one or two frames, and the buffer respects its limit.
enum AudioTarget {
  static func run(_ bytes: [UInt8]) {
    var program = Program(bytes)
    var now = Instant(nanoseconds: 1_000_000_000)
    var buffer = AudioJitterBuffer()
    var sequence = program.u16()
    var timestamp = program.u32()
    while !program.isAtEnd {
      switch program.u8() % 4 {
      case 0:
        now = now + .milliseconds(20)
        let playout = buffer.next(at: now)
        check((1...2).contains(playout.count), "there is always something to play")
      case 1: now = now + program.duration()
      case 2:
        sequence = program.u16()
        timestamp = program.u32()
      default:
        let step = program.u8() & 7
        sequence &+= UInt16(step)
        timestamp &+= 960 &* UInt32(step)
        buffer.repairTime = program.bit() ? program.duration() : nil
        let frames = (0..<Int(program.u8() & 3)).map { _ in program.bytes() }
        buffer.insert(
          sequence: sequence, timestamp: timestamp, frames: frames,
          level: program.bit() ? program.u8() & 0x7F : nil, at: now)
      }
      // All frames of a packet arrive with the first one, whose transit time counts.
      let least = Duration.zero - .milliseconds(20) * 2
      check(buffer.currentDelay >= least, "audio is never played before it arrived")
    }
  }
}
