import Muster
import MusterBase
import MusterSystem
import Synchronization

/// Assigns the tile numbers of the page: 0 is this node's preview, every other number is a video
/// stream of a member in a channel.
///
/// A number is free again when its member is no longer in the call, and is given to another stream
/// as late as possible, when the page has long forgotten it. Members can offer more streams than
/// there are numbers: every camera of a full channel gets one, then a second stream of every
/// member.
package final class PageTiles: Sendable {
  private struct Owner: Equatable {
    var channel: String
    var member: NodeID
    var stream: StreamID
  }

  private struct State {
    /// The owners of the tiles by number; nil for a free number.
    var owners = [Owner?](repeating: nil, count: 256)
    /// The free numbers, those first that have been free for longest.
    var free = [UInt8](1...255)
    var sequences = [UInt32](repeating: 0, count: 256)
    var lastTimestamp = [Double](repeating: 0, count: 256)
  }

  private let state = Mutex(State())

  /// The numbers kept free for the cameras of others, and again for their second streams.
  private static let reserve = Limits.peersPerChannel

  package init() {}

  /// The tile of a member's video stream in a channel; nil if there is no number for it.
  package func tile(of stream: StreamID, of member: NodeID, in channel: String) -> UInt8? {
    let owner = Owner(channel: channel, member: member, stream: stream)
    return state.withLock { Self.tile(of: owner, &$0) }
  }

  /// The stream that a tile shows; nil for the preview and for a free number.
  package func owner(of tile: UInt8) -> (channel: String, member: NodeID, stream: StreamID)? {
    state.withLock { state in
      state.owners[Int(tile)].map { ($0.channel, $0.member, $0.stream) }
    }
  }

  /// Frees the tiles of all but these members of each channel.
  package func keep(_ members: [(channel: String, inCall: [NodeID])]) {
    state.withLock { state in
      for number in 1...255 as ClosedRange<UInt8> {
        guard let owner = state.owners[Int(number)] else { continue }
        let isKept = members.contains {
          $0.channel == owner.channel && $0.inCall.contains(owner.member)
        }
        guard !isKept else { continue }
        state.owners[Int(number)] = nil
        state.free.append(number)
      }
    }
  }

  private static func tile(of owner: Owner, _ state: inout State) -> UInt8? {
    if let index = state.owners.firstIndex(of: owner) { return UInt8(index) }
    let others = state.owners.count {
      $0?.member == owner.member && $0?.channel == owner.channel && $0?.stream != .camera
    }
    let kept = owner.stream == .camera ? 0 : reserve * (1 + min(others, 1))
    guard state.free.count > kept else { return nil }
    let number = state.free.removeFirst()
    state.owners[Int(number)] = owner
    return number
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
        sentAtMilliseconds: WallClock.exactMilliseconds,
        timestampMicroseconds: state.lastTimestamp[index], data: viewed.data)
    }
  }
}
