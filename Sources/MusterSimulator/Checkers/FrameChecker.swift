import MusterBase

/// Checks that frames are decodable in order: every frame refers only to frames decoded before it,
/// and no frame is shown twice or after a newer frame.
public struct FrameChecker: Sendable {
  /// The reference frames of the decoder for one stream of one member.
  private struct Decoder: Sendable {
    var layer: UInt8
    var run: UInt8
    var base: UInt32
    var golden: UInt32 = 0
    /// The last serial number shown, by layer.
    var shown: [UInt32] = Array(repeating: 0, count: Limits.spatialLayers)
  }

  private var decoders: [Decoder?]
  private let nodes: Int

  /// `nodes` is the number of hosts; there is one decoder per receiver, sender and stream.
  public init(nodes: Int) {
    self.nodes = nodes
    decoders = Array(repeating: nil, count: nodes * nodes * Limits.videoStreams)
  }

  private func index(_ stream: StreamID, from sender: Int, at receiver: Int) -> Int {
    (receiver * nodes + sender) * Limits.videoStreams + stream.index
  }

  /// Records that the receiver has dropped its decoder for a member's stream, or for all of the
  /// member's streams when `stream` is nil.
  public mutating func ended(_ stream: StreamID? = nil, from sender: Int, at receiver: Int) {
    for ended in stream.map({ [$0] }) ?? StreamID.all {
      decoders[index(ended, from: sender, at: receiver)] = nil
    }
  }

  /// Records a restart of the receiver, which drops all its decoders.
  public mutating func restarted(_ receiver: Int) {
    for sender in 0..<nodes { ended(from: sender, at: receiver) }
  }

  /// The fault in a frame that `receiver` received over its link to `sender`, and shows or only
  /// decodes; nil for none.
  public mutating func decoded(
    _ frame: [UInt8], of stream: StreamID = .camera, layer: Int, isShown: Bool = true,
    from sender: Int, at receiver: Int
  ) -> String? {
    guard let token = FrameToken(frame) else { return "a frame nobody made, \(frame.count) bytes" }
    let name =
      "frame \(token.serial) of \(token.sender), stream \(token.stream), layer \(token.layer), "
      + "at \(receiver)"
    guard Int(token.sender) == sender, token.stream == stream.number, Int(token.layer) == layer
    else { return "\(name) came as of \(sender), \(stream), layer \(layer)" }
    let index = index(stream, from: sender, at: receiver)
    // A node that returns with a later run is treated as a new member, with a new decoder.
    let known = decoders[index].flatMap { $0.run < token.run ? nil : $0 }
    guard var decoder = known ?? start(token) else {
      return "\(name): the first is no keyframe"
    }
    guard decoder.run == token.run else { return "\(name): of run \(token.run)" }
    guard layer < decoder.shown.count, !isShown || decoder.shown[layer] < token.serial else {
      return "\(name): after a later one"
    }
    if let fault = decode(token, &decoder) { return "\(name): \(fault)" }
    decoder.shown[layer] = max(decoder.shown[layer], token.serial)
    decoders[index] = decoder
    return nil
  }

  private func start(_ token: FrameToken) -> Decoder? {
    token.isKeyframe ? Decoder(layer: token.layer, run: token.run, base: token.serial) : nil
  }

  private func decode(_ token: FrameToken, _ decoder: inout Decoder) -> String? {
    if token.isKeyframe {
      (decoder.layer, decoder.base, decoder.golden) = (token.layer, token.serial, 0)
      return nil
    }
    guard decoder.layer == token.layer else { return "changes the layer without a keyframe" }
    guard decoder.base == token.base else {
      return "refers to \(token.base), the decoder has \(decoder.base)"
    }
    guard token.golden == 0 || token.golden == decoder.golden else {
      return "refers to \(token.golden), the decoder has \(decoder.golden)"
    }
    switch token.temporalLayer {
    case 0: (decoder.base, decoder.golden) = (token.serial, 0)
    case 1: decoder.golden = token.serial
    default: break
    }
    return nil
  }
}
