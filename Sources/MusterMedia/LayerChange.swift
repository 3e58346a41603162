import MusterWire

/// The reason for the layer that is sent or received, or for the absence of video.
public enum LayerReason: String, Equatable, Sendable {
  /// The call has started; the best layer is used until a subscription arrives.
  case started = "call-started"
  /// The receiver's subscription changed.
  case requested = "receiver-request"
  /// The sender muted its video.
  case muted = "video-muted"
  /// The sender unmuted its video.
  case unmuted = "video-unmuted"
  /// The sender's role forbids sending, or has just been changed to allow it.
  case role = "role-changed"
  /// The sender has no source for the stream, or has changed the source.
  case source = "source-changed"
  /// One side has left the call.
  case ended = "left-call"

  /// The reason that is reported when video resumes after it was off for this one.
  var onResuming: LayerReason { self == .muted ? .unmuted : self == .ended ? .started : self }
}

/// A change of the layer of one stream on one link; nil means no video.
public struct LayerChange: Equatable, Sendable {
  /// The former layer.
  public var from: VideoLayer?
  /// The new layer.
  public var to: VideoLayer?
  /// The reason for the change.
  public var why: LayerReason

  /// Creates a change between two layers, where nil means no video.
  public init(from: VideoLayer?, to: VideoLayer?, why: LayerReason) {
    self.from = from
    self.to = to
    self.why = why
  }
}
