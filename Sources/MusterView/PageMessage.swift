import FoundationEssentials
import Muster

/// A message from a page: a command to the node, or what the page shows.
enum PageMessage: Equatable {
  case command(Command)
  /// The tiles that the page shows from now on, such as
  /// `{"do":"show","tiles":[{"tile":1,"width":640,"height":360}]}`.
  case show([ShownTile])

  private struct Verb: Decodable { var `do`: String? }
  private struct Show: Decodable { var tiles: [ShownTile] }

  /// Parses a message; the error says what is wrong with it.
  init(json: [UInt8]) throws(MusterError) {
    let data = Data(json)
    guard let verb = try? JSONDecoder().decode(Verb.self, from: data), verb.do == "show" else {
      self = .command(try Command(json: json))
      return
    }
    guard let show = try? JSONDecoder().decode(Show.self, from: data) else {
      throw MusterError(
        "the tiles that are shown cannot be read",
        hint: "each has \"tile\", \"width\" and \"height\"", kind: .usage)
    }
    self = .show(show.tiles)
  }
}

/// A tile that a page shows: that of a member's video stream, or this node's preview (0).
public struct ShownTile: Codable, Equatable, Sendable {
  /// The tile's number, as in `ViewSnapshot`.
  public var tile: UInt8
  /// The useful width of the video in pixels.
  public var width: Int
  /// The useful height of the video in pixels.
  public var height: Int
  /// The useful frame rate; nil for any.
  public var fps: Int?
  /// Whether the tile is pinned; nil for no.
  public var pin: Bool?

  /// A tile with the useful size and frame rate of its video.
  public init(tile: UInt8, width: Int, height: Int, fps: Int? = nil, pin: Bool? = nil) {
    self.tile = tile
    self.width = width
    self.height = height
    self.fps = fps
    self.pin = pin
  }
}
