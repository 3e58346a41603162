import MusterBase
import MusterWire

/// What this node requests of the video of others, in all channels.
///
/// A viewer, the call page, states what it shows. Commands request streams whether they are shown
/// or not; for others `Node.Configuration` says what else is requested. The larger request counts.
struct VideoRequests: Sendable {
  private let configuration: Node.Configuration
  /// The requests by command for streams of single members, which precede those for everyone; at
  /// most `watchedLimit`.
  private var watched = PeerTable<MemberStream, Watched>()
  /// The requests by command for the streams of all members of a channel, by stream index; at most
  /// `Limits.channels`.
  private var everyone = PeerTable<ChannelID, [VideoRequest?]>()
  /// What the viewer shows; nil while there is none. At most `shownLimit` streams.
  private var shown: PeerTable<MemberStream, Watched>?

  /// A request for one stream, and whether it ranks before all that are not pinned.
  private struct Watched {
    var request: VideoRequest
    var isPinned: Bool
  }

  /// The streams of all members with links.
  private static let watchedLimit = Limits.links * Limits.videoStreams
  private static let shownLimit = Limits.links * Limits.videoStreams

  init(_ configuration: Node.Configuration) { self.configuration = configuration }

  /// The most streams that this node receives at once; nil for no limit.
  var maxStreams: Int? { configuration.maxStreams }

  /// The request for a stream, whatever its rank.
  subscript(stream: MemberStream) -> VideoRequest {
    let configured = shown == nil ? configuration.requested : configuration.requestedBesidesViewer
    let asked =
      watched[stream]?.request ?? everyone[stream.link.channel]?[stream.stream.index] ?? configured
    guard let visible = shown?[stream]?.request else { return asked }
    return visible.limited(to: configuration.shownLimit).combined(with: asked)
  }

  /// Whether the viewer or a command has pinned a stream.
  func isPinned(_ stream: MemberStream) -> Bool {
    watched[stream]?.isPinned ?? false || shown?[stream]?.isPinned ?? false
  }

  /// Requests streams of a channel by command: of one member, pinned or not, or of all current and
  /// future members if `member` is nil.
  mutating func watch(
    _ request: VideoRequest, _ streams: [StreamID], of member: NodeID?, isPinned: Bool,
    in channel: ChannelID
  ) {
    for stream in streams {
      if let member {
        let key = MemberStream(LinkID(channel: channel, peer: member), stream)
        guard watched[key] != nil || watched.count < Self.watchedLimit else { continue }
        watched[key] = Watched(request: request, isPinned: isPinned)
      } else {
        for key in watched.keys where key.link.channel == channel && key.stream == stream {
          watched[key] = nil
        }
        var all = everyone[channel] ?? Array(repeating: nil, count: Limits.videoStreams)
        all[stream.index] = request
        everyone[channel] = all
      }
    }
  }

  /// Sets what the viewer shows; nil if there is no viewer any more.
  mutating func show(_ streams: [ShownStream]?) {
    shown = streams.map { streams in
      var table = PeerTable<MemberStream, Watched>()
      for shown in streams.prefix(Self.shownLimit) {
        let same = table[shown.stream]
        table[shown.stream] = Watched(
          request: shown.request.combined(with: same?.request ?? .none),
          isPinned: shown.isPinned || same?.isPinned ?? false)
      }
      return table
    }
  }

  /// Forgets the requests of a member that has left the channel.
  mutating func forget(_ link: LinkID) {
    for stream in StreamID.all { watched[MemberStream(link, stream)] = nil }
  }

  /// Forgets the requests of a channel that the node has left.
  mutating func close(_ channel: ChannelID) {
    for key in watched.keys where key.link.channel == channel { watched[key] = nil }
    everyone[channel] = nil
  }
}

/// A stream that the viewer shows.
public struct ShownStream: Sendable {
  /// The stream that is shown.
  public var stream: MemberStream
  /// How much of the stream is useful to the viewer.
  public var request: VideoRequest
  /// Whether the stream ranks before all that are not pinned.
  public var isPinned: Bool

  /// A stream with the request for it.
  public init(_ stream: MemberStream, _ request: VideoRequest, isPinned: Bool = false) {
    self.stream = stream
    self.request = request
    self.isPinned = isPinned
  }
}
