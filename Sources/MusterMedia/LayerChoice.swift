import MusterBase
import MusterWire

/// The simulcast layer for a requested resolution.
public enum LayerChoice {
  /// The index of the largest layer within the requested resolution, else of the smallest layer;
  /// nil if no video is requested or offered.
  ///
  /// Compares the shorter sides, so that portrait video in a landscape tile is limited by the side
  /// that limits it on screen.
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
