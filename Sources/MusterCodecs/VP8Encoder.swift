import CMusterShims
import CVPX
import MusterBase

/// One encoded VP8 frame (RFC 6386).
public struct EncodedVP8: Equatable, Sendable {
  /// The frame's bytes.
  public let data: [UInt8]
  /// Whether the frame decodes without any earlier frame.
  public let isKeyframe: Bool
  /// Temporal layer 0, 1 or 2; each layer decodes without the higher layers.
  public let temporalLayer: Int
  /// Whether later frames may predict from this one.
  public let isReference: Bool
}

/// A real-time VP8 encoder for one simulcast layer, with a fixed size, one thread and up to three
/// temporal layers.
///
/// Settings are libwebrtc's (`libvpx_vp8_encoder.cc`) unless a comment gives a reason. Encoding is
/// deterministic (equal frames at equal times give equal bytes), because there is one thread and a
/// negative `cpu-used` does not adapt to the time spent. Not thread-safe: use it from one thread at
/// a time.
public final class VP8Encoder {
  /// The size of all frames.
  public let size: VideoSize
  /// The nominal frame rate with all temporal layers, clamped to 1...120.
  public let framesPerSecond: Int
  /// The number of temporal layers that are encoded, 1 to 3, from the base layer on.
  public let temporalLayers: Int
  /// The current target bitrate of all three temporal layers together in kbit/s, within `bitrates`;
  /// those that are encoded have their share of it.
  public private(set) var kilobitsPerSecond: Int

  private let context: UnsafeMutablePointer<vpx_codec_ctx_t>
  private let image: UnsafeMutablePointer<vpx_image_t>
  private var configuration: vpx_codec_enc_cfg_t
  private var pattern: TemporalPattern
  private var clock: FrameClock
  /// Whether the next frame must be a keyframe: true initially, and from a request until a keyframe
  /// is produced.
  private var owesKeyframe = true
  /// Whether a cut lies between the last encoded frame and the next one.
  private var isAfterCut = false

  /// Whether the encoder works fast rather than well.
  private var isQuick = false

  /// The range of target bitrates in kbit/s; values outside are clamped.
  public static let bitrates = 10...20_000

  /// `framesPerSecond` is the source's nominal rate; the rate control follows the actual rate. With
  /// two temporal layers every second frame of the source is to be encoded, with one every fourth
  /// (`TemporalLayers.decimators`). Throws for sizes beyond VP8's 14 bits and if libvpx cannot
  /// start.
  public init(
    size: VideoSize, framesPerSecond: Int, kilobitsPerSecond: Int,
    temporalLayers: Int = TemporalLayers.count
  ) throws(CodecError) {
    guard size.width > 0, size.height > 0, size.width < 1 << 14, size.height < 1 << 14 else {
      throw CodecError("VP8 cannot encode frames of \(size)")
    }
    self.size = size
    self.framesPerSecond = min(max(framesPerSecond, 1), 120)
    self.kilobitsPerSecond = Self.clamped(kilobitsPerSecond)
    self.temporalLayers = min(max(temporalLayers, 1), TemporalLayers.count)
    pattern = TemporalPattern(layers: self.temporalLayers)
    let decimator = TemporalLayers.decimators[self.temporalLayers - 1]
    clock = FrameClock(framesPerSecond: Double(self.framesPerSecond) / Double(decimator))
    configuration = Self.configuration(
      size: size, kilobitsPerSecond: self.kilobitsPerSecond, pattern.cycle)
    context = .allocate(capacity: 1)
    context.initialize(to: vpx_codec_ctx_t())
    image = .allocate(capacity: 1)
    image.initialize(to: vpx_image_t())
    guard withUnsafePointer(to: configuration, { muster_vp8_encoder_init(context, $0) }) == 0
    else {
      // All properties are set, so `deinit` frees the allocated memory.
      throw CodecError("libvpx cannot make a VP8 encoder for \(size)")
    }
    applyControls()
  }

  deinit {
    vpx_codec_destroy(context)
    context.deallocate()
    image.deallocate()
  }

  /// Encodes one frame; nil if the rate control drops it. A keyframe request stays pending until a
  /// keyframe is produced.
  public func encode(
    _ frame: I420Frame, at capturedAt: Instant, forceKeyframe: Bool = false
  ) throws(CodecError) -> EncodedVP8? {
    guard frame.size == size else {
      throw CodecError("a frame of \(frame.size) came to an encoder for \(size)")
    }
    if forceKeyframe { owesKeyframe = true }
    let wantsKeyframe = owesKeyframe
    let isCoarse = isAfterCut && !wantsKeyframe
    if isCoarse { pattern.restartWithBase() }
    setQuantizers(isCoarse ? coarseQuantizers : Self.quantizers)
    let step = pattern.next
    let layer = wantsKeyframe ? 0 : step.layer
    _ = muster_vp8_encoder_set(
      context, Int32(VP8E_SET_TEMPORAL_LAYER_ID.rawValue), Int32(layer))
    let time = clock.advance(to: capturedAt)
    wrap(frame)
    let flags = wantsKeyframe ? Int(VPX_EFLAG_FORCE_KF) : Self.flags(for: step)
    let result = vpx_codec_encode(
      context, image, time.start, UInt(time.length), vpx_enc_frame_flags_t(flags),
      UInt(VPX_DL_REALTIME))
    guard result == VPX_CODEC_OK else {
      throw CodecError("VP8 encoding failed: \(String(cString: vpx_codec_err_to_string(result)))")
    }
    guard let packet = takePacket() else {
      if !wantsKeyframe { pattern.skip() }
      return nil
    }
    isAfterCut = false
    if packet.isKeyframe {
      owesKeyframe = false
      pattern.restart()
    } else {
      pattern.advance()
    }
    return EncodedVP8(
      data: packet.data, isKeyframe: packet.isKeyframe,
      temporalLayer: packet.isKeyframe ? 0 : step.layer,
      isReference: packet.isKeyframe || step.isReference)
  }

  /// Notes that the next frame is the first of another scene: it becomes a coarse one of the base
  /// layer, unless it is a keyframe. Without that it would be as large as 4 to 15 others, which
  /// takes a path of the target bitrate up to half a second, and after one of a higher layer, of
  /// which no base frame makes use, the next base frame as well.
  public func noteCut() { isAfterCut = true }

  /// Changes the target bitrate from the next frame on, without a keyframe.
  public func setBitrate(_ kilobitsPerSecond: Int) {
    let wanted = Self.clamped(kilobitsPerSecond)
    guard wanted != self.kilobitsPerSecond else { return }
    var changed = configuration
    Self.setRates(&changed, kilobitsPerSecond: wanted, temporalLayers: temporalLayers)
    if apply(changed) { self.kilobitsPerSecond = wanted }
  }

  /// Lets the encoder work fast rather than well from the next frame on, or well again.
  public func setQuick(_ isQuick: Bool) {
    guard isQuick != self.isQuick else { return }
    self.isQuick = isQuick
    set(VP8E_SET_CPUUSED, cpuUsed)
  }

  /// The range of quantiser indices, of 0 to 63, for the first frame of another scene, by the bits
  /// that a mean frame has for each pixel. Measured with street scenes at 55 to 2000 kbit/s, in
  /// 320x180 and 640x360: such frames are then 1 to 6 times as large as a mean one, and the mean
  /// quality is 0.1 to 0.5 dB less.
  private var coarseQuantizers: ClosedRange<UInt32> {
    let decimator = TemporalLayers.decimators[temporalLayers - 1]
    let share = TemporalLayers.cumulativePercent[temporalLayers - 1]
    let pixels = size.pixels * framesPerSecond / decimator
    let bits = Double(kilobitsPerSecond * 10 * share) / Double(pixels)
    let least = UInt32(min(max(58 - 10 * Math.log(bits / 0.05) / Math.log(2), 30), 63))
    return least...max(least, Self.quantizers.upperBound)
  }

  private func setQuantizers(_ range: ClosedRange<UInt32>) {
    guard range != configuration.rc_min_quantizer...configuration.rc_max_quantizer else { return }
    var changed = configuration
    (changed.rc_min_quantizer, changed.rc_max_quantizer) = (range.lowerBound, range.upperBound)
    apply(changed)
  }

  /// Applies a changed configuration from the next frame on; false if libvpx refuses it.
  @discardableResult
  private func apply(_ changed: vpx_codec_enc_cfg_t) -> Bool {
    guard withUnsafePointer(to: changed, { vpx_codec_enc_config_set(context, $0) }) == VPX_CODEC_OK
    else { return false }
    configuration = changed
    return true
  }

  private static func clamped(_ kilobits: Int) -> Int {
    min(max(kilobits, bitrates.lowerBound), bitrates.upperBound)
  }

  private static func flags(for step: TemporalPattern.Step) -> Int {
    var flags = Int(VP8_EFLAG_NO_REF_ARF) | Int(VP8_EFLAG_NO_UPD_ARF)
    if !step.reads.contains(.golden) { flags |= Int(VP8_EFLAG_NO_REF_GF) }
    if !step.updates.contains(.last) { flags |= Int(VP8_EFLAG_NO_UPD_LAST) }
    if !step.updates.contains(.golden) { flags |= Int(VP8_EFLAG_NO_UPD_GF) }
    if step.layer > 0 { flags |= Int(VP8_EFLAG_NO_UPD_ENTROPY) }
    return flags
  }

  private func wrap(_ frame: I420Frame) {
    image.pointee.fmt = VPX_IMG_FMT_I420
    image.pointee.w = UInt32(size.width)
    image.pointee.h = UInt32(size.height)
    image.pointee.d_w = UInt32(size.width)
    image.pointee.d_h = UInt32(size.height)
    image.pointee.bit_depth = 8
    image.pointee.bps = 12
    image.pointee.x_chroma_shift = 1
    image.pointee.y_chroma_shift = 1
    image.pointee.planes = (frame.y, frame.u, frame.v, nil)
    image.pointee.stride = (Int32(frame.strideY), Int32(frame.strideUV), Int32(frame.strideUV), 0)
  }

  private func takePacket() -> (data: [UInt8], isKeyframe: Bool)? {
    var iterator: vpx_codec_iter_t?
    var result: (data: [UInt8], isKeyframe: Bool)?
    while let packet = vpx_codec_get_cx_data(context, &iterator) {
      guard packet.pointee.kind == VPX_CODEC_CX_FRAME_PKT else { continue }
      let frame = packet.pointee.data.frame
      guard let buffer = frame.buf, frame.sz > 0 else { continue }
      let isKeyframe = frame.flags & UInt32(VPX_FRAME_IS_KEY) != 0
      result = ([UInt8](UnsafeRawBufferPointer(start: buffer, count: frame.sz)), isKeyframe)
    }
    return result
  }
}

extension VP8Encoder {
  private static func configuration(
    size: VideoSize, kilobitsPerSecond: Int, _ cycle: [Int]
  ) -> vpx_codec_enc_cfg_t {
    var configuration = vpx_codec_enc_cfg_t()
    vpx_codec_enc_config_default(vpx_codec_vp8_cx(), &configuration, 0)
    configuration.g_w = UInt32(size.width)
    configuration.g_h = UInt32(size.height)
    configuration.g_timebase = vpx_rational_t(num: 1, den: FrameClock.ticksPerSecond)
    // Measured: libvpx's worker threads busy-wait, which doubles the CPU time per frame.
    configuration.g_threads = 1
    configuration.g_profile = 0
    configuration.g_lag_in_frames = 0
    configuration.g_pass = VPX_RC_ONE_PASS
    configuration.g_error_resilient = UInt32(VPX_ERROR_RESILIENT_DEFAULT)
    configuration.kf_mode = VPX_KF_DISABLED
    configuration.rc_end_usage = VPX_CBR
    configuration.rc_resize_allowed = 0
    configuration.rc_min_quantizer = quantizers.lowerBound
    configuration.rc_max_quantizer = quantizers.upperBound
    configuration.rc_undershoot_pct = 100
    configuration.rc_overshoot_pct = 15
    configuration.rc_buf_initial_sz = 500
    configuration.rc_buf_optimal_sz = UInt32(optimalBufferMilliseconds)
    configuration.rc_buf_sz = 1000
    configuration.rc_dropframe_thresh = 30
    let temporalLayers = (cycle.max() ?? 0) + 1
    configuration.ts_number_layers = UInt32(temporalLayers)
    configuration.ts_periodicity = UInt32(cycle.count)
    for (index, decimator) in TemporalLayers.decimators.suffix(temporalLayers).enumerated() {
      set(&configuration.ts_rate_decimator, index, UInt32(decimator))
    }
    for (index, layer) in cycle.enumerated() {
      set(&configuration.ts_layer_id, index, UInt32(layer))
    }
    setRates(
      &configuration, kilobitsPerSecond: kilobitsPerSecond, temporalLayers: temporalLayers)
    return configuration
  }

  private static let optimalBufferMilliseconds = 600
  /// The range of quantiser indices, of 0 to 63.
  private static let quantizers: ClosedRange<UInt32> = 2...56

  private static func setRates(
    _ configuration: inout vpx_codec_enc_cfg_t, kilobitsPerSecond: Int, temporalLayers: Int
  ) {
    let rates = TemporalLayers.cumulativePercent.prefix(temporalLayers)
      .map { UInt32(kilobitsPerSecond * $0 / 100) }
    configuration.rc_target_bitrate = rates.last ?? 0
    for (index, rate) in rates.enumerated() {
      set(&configuration.ts_target_bitrate, index, rate)
    }
  }

  /// Writes one element of a C array, which Swift imports as a tuple.
  private static func set<Tuple>(_ array: inout Tuple, _ index: Int, _ value: UInt32) {
    withUnsafeMutableBytes(of: &array) { bytes in
      let offset = index * MemoryLayout<UInt32>.stride
      bytes.storeBytes(of: value, toByteOffset: offset, as: UInt32.self)
    }
  }

  /// Measured per 720p frame: 8.5 ms with -4, 4.5 ms with -6, 4.1 ms with -8 at less than 0.1 dB
  /// loss. Below CIF a whole frame takes 0.3 ms, so quality is preferred at those sizes. With -12,
  /// to which libwebrtc goes on slow machines, little is left to save.
  private var cpuUsed: Int { isQuick ? -12 : size.pixels < 352 * 288 ? -6 : -8 }

  private func set(_ control: vp8e_enc_control_id, _ value: Int) {
    _ = muster_vp8_encoder_set(context, Int32(control.rawValue), Int32(value))
  }

  private func applyControls() {
    set(VP8E_SET_CPUUSED, cpuUsed)
    set(VP8E_SET_NOISE_SENSITIVITY, 0)
    set(VP8E_SET_STATIC_THRESHOLD, 1)
    set(VP8E_SET_TOKEN_PARTITIONS, 0)
    // The maximum size of a keyframe: half the optimal buffer, or at least the size of three
    // average frames (libwebrtc's rule).
    let decimator = TemporalLayers.decimators[temporalLayers - 1]
    let percent = max(300, Self.optimalBufferMilliseconds * framesPerSecond / decimator / 20)
    set(VP8E_SET_MAX_INTRA_BITRATE_PCT, percent)
  }
}

/// The presentation times for the rate control, which derives the bits per frame from the intervals
/// between those times.
///
/// libvpx treats every interval that differs by more than 10 % from the previous interval as a new
/// frame rate. Camera capture times jitter by more, so intervals are smoothed.
struct FrameClock {
  static let ticksPerSecond: Int32 = 90_000

  private let nominal: Int64
  private var interval: Int64
  private var next: Int64 = 0
  private var previous: Instant?

  init(framesPerSecond: Double) {
    nominal = Int64(Double(Self.ticksPerSecond) / framesPerSecond)
    interval = nominal
  }

  mutating func advance(to now: Instant) -> (start: Int64, length: Int64) {
    if let previous {
      let elapsed = (now - previous).wholeNanoseconds
      // Limited to 1 s, because a long pause is not a change of the frame rate.
      let bounded = min(max(elapsed, 0), 1_000_000_000)
      let ticks = bounded * Int64(Self.ticksPerSecond) / 1_000_000_000
      interval += (min(max(ticks, nominal / 4), nominal * 8) - interval) / 8
    }
    previous = now
    defer { next += interval }
    return (next, interval)
  }
}
