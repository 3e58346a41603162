import MusterBase
import MusterWire

/// Which simulcast layer a receiver gets.
public enum LayerChoice {
  /// The index of the largest layer that is no larger than the requested resolution, else of the
  /// smallest; nil when no video is requested or there are no layers.
  ///
  /// Sizes are compared by the shorter side, so that a tall frame in a wide tile is judged by the
  /// side that limits it.
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
