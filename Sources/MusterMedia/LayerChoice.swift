import MusterBase
import MusterWire

/// The selection of the simulcast layer and its frame rate for a request.
public enum LayerChoice {
  /// The whole of what a receiver requests: the largest layer within the requested size, or else
  /// the smallest layer; and its highest frame rate within the requested one, or else the lowest.
  /// Nil if no video is requested or offered.
  ///
  /// The shorter sides are compared, because for portrait video in a landscape tile that side
  /// limits the size on screen.
  public static func step(for request: VideoRequest, among layers: [VideoLayer]) -> LayerStep? {
    guard request.wantsVideo else { return nil }
    let limit = Int(min(request.width, request.height))
    let bySize = layers.indices.sorted { a, b in
      let (x, y) = (layers[a].size, layers[b].size)
      return (x.shortSide, x.pixels, a) < (y.shortSide, y.pixels, b)
    }
    guard let layer = bySize.last(where: { layers[$0].size.shortSide <= limit }) ?? bySize.first
    else { return nil }
    return LayerStep(layer: layer, temporalLayers: temporalLayers(of: layers[layer], for: request))
  }

  private static func temporalLayers(of layer: VideoLayer, for request: VideoRequest) -> Int {
    guard request.framesPerSecond != VideoRequest.anyRate else { return TemporalLayers.count }
    let most = Int(request.framesPerSecond)
    return TemporalLayers.decimators.lastIndex { layer.framesPerSecond <= most * $0 }.map { $0 + 1 }
      ?? 1
  }
}
