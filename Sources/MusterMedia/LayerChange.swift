import MusterWire

/// Why a layer is sent, or why none is.
public enum LayerReason: String, Equatable, Sendable {
  /// The best layer, from the beginning of the call on.
  case started = "call started"
  /// The receiver requests a smaller resolution than the best, another one than before, or nothing.
  case requested = "receiver's request"
  case muted = "video muted"
  case unmuted = "video unmuted"
  /// The sender's role does not allow it to send, or has only just come to allow it.
  case role = "role changed"
  /// The sender has no such source, or its source has changed.
  case source = "source changed"
  /// One of the two has left the call.
  case ended = "left the call"

  /// The reason for sending the best layer after none was sent for this reason.
  var onResuming: LayerReason { self == .muted ? .unmuted : self == .ended ? .started : self }
}

/// A change of the layer of one stream on one link; nil stands for none.
public struct LayerChange: Equatable, Sendable {
  public var from: VideoLayer?
  public var to: VideoLayer?
  public var why: LayerReason

  public init(from: VideoLayer?, to: VideoLayer?, why: LayerReason) {
    self.from = from
    self.to = to
    self.why = why
  }
}
