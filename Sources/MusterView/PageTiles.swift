import Glibc
import Muster
import MusterBase
import Synchronization

/// Assigns the tile numbers of the page: 0 is this node's preview, every other number is a video
/// stream of a member in a channel.
final class PageTiles: Sendable {
  private struct Owner: Equatable {
    var channel: String
    var member: NodeID
    var stream: StreamID
  }

  private struct State {
    /// The owners of the tiles from number 1 on; nil for a free number.
    var owners: [Owner?] = []
    var sequences = [UInt32](repeating: 0, count: 256)
    var lastTimestamp = [Double](repeating: 0, count: 256)
  }

  private let state = Mutex(State())

  /// The tile of a member's video stream in a channel; nil if all numbers are in use.
  func tile(of stream: StreamID, of member: NodeID, in channel: String) -> UInt8? {
    let owner = Owner(channel: channel, member: member, stream: stream)
    return state.withLock { Self.tile(of: owner, &$0) }
  }

  /// The stream that a tile shows; nil for the preview and for a free number.
  func owner(of tile: UInt8) -> (channel: String, member: NodeID, stream: StreamID)? {
    state.withLock { state in
      let index = Int(tile) - 1
      guard state.owners.indices.contains(index), let owner = state.owners[index] else {
        return nil
      }
      return (owner.channel, owner.member, owner.stream)
    }
  }

  /// Frees the tiles of channels that the node has left.
  func keep(_ channels: [String]) {
    state.withLock { state in
      for index in state.owners.indices
      where state.owners[index].map({ !channels.contains($0.channel) }) ?? false {
        state.owners[index] = nil
      }
    }
  }

  private static func tile(of owner: Owner, _ state: inout State) -> UInt8? {
    if let index = state.owners.firstIndex(of: owner) { return UInt8(index + 1) }
    if let free = state.owners.firstIndex(of: nil) {
      state.owners[free] = owner
      return UInt8(free + 1)
    }
    guard state.owners.count < 255 else { return nil }
    state.owners.append(owner)
    return UInt8(state.owners.count)
  }

  /// The frame in the page's format; nil if no tile number is free.
  func frame(_ viewed: ViewedFrame) -> ViewFrame? {
    state.withLock { state in
      var tile: UInt8 = 0
      if let member = viewed.member {
        let owner = Owner(channel: viewed.channel ?? "", member: member, stream: viewed.stream)
        guard let number = Self.tile(of: owner, &state) else { return nil }
        tile = number
      }
      let index = Int(tile)
      state.sequences[index] &+= 1
      // The timestamp is unique within the tile, because the page uses it as the key of a frame.
      let microseconds = Double(viewed.at.nanoseconds / 1000)
      state.lastTimestamp[index] = max(state.lastTimestamp[index] + 1, microseconds)
      return ViewFrame(
        tile: tile, isKeyframe: viewed.isKeyframe,
        isShown: viewed.isShown, temporalLayer: UInt8(clamping: viewed.temporalLayer),
        sequence: state.sequences[index],
        sentAtMilliseconds: Self.wallMilliseconds,
        timestampMicroseconds: state.lastTimestamp[index], data: viewed.data)
    }
  }

  /// The wall time in milliseconds since 1970.
  private static var wallMilliseconds: Double {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Double(time.tv_sec) * 1000 + Double(time.tv_nsec) / 1e6
  }
}
