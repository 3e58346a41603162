import MusterWire

/// The reason for the layer that is sent or received, or for there being none.
public enum LayerReason: String, Equatable, Sendable {
  /// The call has started; the best layer is used until a subscription says otherwise.
  case started = "call started"
  /// The receiver's subscription.
  case requested = "receiver's request"
  /// The sender muted its video.
  case muted = "video muted"
  /// The sender unmuted its video.
  case unmuted = "video unmuted"
  /// The sender's role forbids sending, or has only now come to permit it.
  case role = "role changed"
  /// The sender has no such source, or has changed it.
  case source = "source changed"
  /// One side has left the call.
  case ended = "left the call"

  /// The reason to report when video resumes after it was off for this reason.
  var onResuming: LayerReason { self == .muted ? .unmuted : self == .ended ? .started : self }
}

/// A change of the layer of one stream on one link; nil means no video.
public struct LayerChange: Equatable, Sendable {
  /// The layer before.
  public var from: VideoLayer?
  /// The layer after.
  public var to: VideoLayer?
  /// The reason.
  public var why: LayerReason

  /// A change between two layers, where nil is no video, and its reason.
  public init(from: VideoLayer?, to: VideoLayer?, why: LayerReason) {
    self.from = from
    self.to = to
    self.why = why
  }
}
