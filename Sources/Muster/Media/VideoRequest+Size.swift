import MusterBase
import MusterWire

extension VideoRequest {
  /// Requests video no larger than `size` and no faster than `framesPerSecond`; nil for any rate.
  init(_ size: VideoSize, framesPerSecond: Int?) {
    self.init(
      width: UInt16(clamping: size.width), height: UInt16(clamping: size.height),
      framesPerSecond: framesPerSecond.map { UInt8(clamping: $0) } ?? VideoRequest.anyRate)
  }
}
