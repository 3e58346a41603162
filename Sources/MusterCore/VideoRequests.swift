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
  private var watched = PeerTable<MemberStream, VideoRequest>()
  /// The requests by command for the streams of all members of a channel, by stream index; at most
  /// `Limits.channels`.
  private var everyone = PeerTable<ChannelID, [VideoRequest?]>()
  /// What the viewer shows; nil while there is none. At most `shownLimit` streams.
  private var shown: PeerTable<MemberStream, VideoRequest>?

  /// The streams of all members with links.
  private static let watchedLimit = Limits.links * Limits.videoStreams
  private static let shownLimit = Limits.links * Limits.videoStreams

  init(_ configuration: Node.Configuration) { self.configuration = configuration }

  /// The request for a stream.
  subscript(stream: MemberStream) -> VideoRequest {
    let standing = shown == nil ? configuration.requested : configuration.requestedBesidesViewer
    let asked = watched[stream] ?? everyone[stream.link.channel]?[stream.stream.index] ?? standing
    guard let visible = shown?[stream] else { return asked }
    return visible.limited(to: configuration.shownLimit).combined(with: asked)
  }

  /// The requests for the streams of a member, by stream index.
  func requests(over link: LinkID) -> [VideoRequest] {
    StreamID.all.map { self[MemberStream(link, $0)] }
  }

  /// Requests streams of a channel by command: of one member, or of all current and future members
  /// if `member` is nil.
  mutating func watch(
    _ request: VideoRequest, _ streams: [StreamID], of member: NodeID?, in channel: ChannelID
  ) {
    for stream in streams {
      if let member {
        let key = MemberStream(LinkID(channel: channel, peer: member), stream)
        guard watched[key] != nil || watched.count < Self.watchedLimit else { continue }
        watched[key] = request
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
  mutating func show(_ streams: [(stream: MemberStream, request: VideoRequest)]?) {
    shown = streams.map { streams in
      var table = PeerTable<MemberStream, VideoRequest>()
      for (stream, request) in streams.prefix(Self.shownLimit) {
        table[stream] = request.combined(with: table[stream] ?? .none)
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
