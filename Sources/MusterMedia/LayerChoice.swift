import MusterBase
import MusterWire

/// The selection of the simulcast layer for a requested resolution.
public enum LayerChoice {
  /// The index of the largest layer within the requested resolution, or else of the smallest layer;
  /// nil if no video is requested or offered.
  ///
  /// The shorter sides are compared, because for portrait video in a landscape tile that side
  /// limits the size on screen.
  public static func layer(for requested: RequestedResolution, among layers: [VideoLayer]) -> Int? {
    guard requested.wantsVideo else { return nil }
    let limit = Int(min(requested.width, requested.height))
    let bySize = layers.indices.sorted { a, b in
      let (x, y) = (layers[a].size, layers[b].size)
      return (x.shortSide, x.pixels, a) < (y.shortSide, y.pixels, b)
    }
    return bySize.last { layers[$0].size.shortSide <= limit } ?? bySize.first
  }
}
