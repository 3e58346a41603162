import MusterWire

extension LayerReason {
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
