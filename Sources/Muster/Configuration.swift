import Logging
import MusterBase
import MusterChannel
import MusterCore
import MusterCrypto
import MusterSystem
import MusterWire

/// The settings of a node, which cannot be changed after the start.
public struct Configuration: Sendable {
  /// A channel to join.
  public struct Channel: Sendable {
    /// The channel's name, 1 to `Limits.channelNameBytes` bytes of text without control characters;
    /// for a stored channel also its id, of which 16 hex digits suffice.
    public var name: String
    /// The source of the channel's key.
    public var source: Source

    /// A channel to join whose key comes from `source`.
    public init(name: String, source: Source) {
      self.name = name
      self.source = source
    }

    /// The source of the channel's key.
    public enum Source: Sendable {
      /// The remembered channel with this name or id; an error if there is none, and for a public
      /// channel, which anyone who knows its name can join.
      case stored
      /// The remembered channel with this name or id, or else the public channel of this name.
      case storedOrPublic
      /// The open channel with this key, whichever other channel is remembered under the name:
      /// agreeing on a new passphrase is how members exclude others from an open channel.
      case open(ChannelKey)
      /// The open channel with this key, unless it is not remembered, but a created channel of the
      /// same name is: that one if it was created here, else an error. For a key that was not given
      /// for this channel alone, such as one from an exported passphrase.
      case openUnlessCreated(ChannelKey)
      /// The channel of the invite; an error if another channel is remembered under its name.
      case invite(Invite)
    }
  }

  /// The display name where none is given: the user's, or "member".
  public static var defaultName: String {
    let user = getenv("USER").map { String(cString: $0) } ?? ""
    let name = DisplayText.sanitized(user, limit: Limits.nameBytes)
    return name.isEmpty ? "member" : name
  }

  /// The display name that other members see, shortened to `Limits.nameBytes` bytes.
  public var name = "member"
  /// The channels to join at the start; at most `Limits.channels`.
  public var channels: [Channel] = []
  /// Whether to start or join the call of every channel immediately after the start.
  public var call = false
  /// Whether to join every call that another member starts, in every channel and as long as the
  /// node runs; a call that the node has left is not joined again.
  public var answersCalls = false
  /// The video source: `camera[:PATH]`, `test[:WxH@FPS]` or a file; nil for none.
  public var video: String?
  /// The source of the second video stream, the share: `test[:WxH@FPS]` or a file; nil for none.
  public var share: String?
  /// The audio source: `mic[:PCM]`, `tone` or a file; nil for none.
  public var audio: String?
  /// The audio output: `default`, an ALSA PCM or a file; nil for none.
  public var speaker: String?
  /// Whether to join every channel with the microphone muted.
  public var audioMuted = false
  /// Whether to join every channel with the camera off.
  public var videoMuted = false
  /// The bitrate limit of the camera's top layer in kbit/s; nil for none.
  public var videoBitrate: Int?
  /// The most that this node sends in all, in kbit/s of IP packets; nil to find out. All paths
  /// share it by plan: audio first, then the smallest layer for everyone, then larger ones.
  public var uplink: Int?
  /// The largest size that is requested of the members' video to show or record it; with nil there
  /// is no limit. With a value video is requested also while nothing shows or records it.
  public var maxVideo: VideoSize?
  /// The highest frame rate that is requested with `maxVideo`, up to 254; nil for no limit.
  public var maxFramesPerSecond: Int?
  /// The most videos that are received at once, in all channels; those that rank lowest rest. Nil
  /// for no limit.
  public var maxStreams: Int?
  /// Whether to decode the test patterns of others, to measure their latency.
  public var measuresLatency = true
  /// The nodes to contact in addition to those on the LAN, each as `HOST:PORT`.
  public var peers: [String] = []
  /// The rendezvous servers used to find members beyond the LAN, each as `HOST:PORT`.
  public var rendezvous: [String] = []
  /// Whether this node also serves as a rendezvous server for other nodes.
  public var offersRendezvous = false
  /// Whether to request a port mapping from the gateway, if this node looks for members beyond its
  /// LAN.
  public var mapsPorts = true
  /// Whether to mark audio and video in their IP headers (DSCP), so that Wi-Fi and routers let them
  /// pass before other traffic; where the system does not permit it, they are not marked.
  public var marksClasses = true
  /// The bootstrap nodes of the OpenDHT network that this node joins to find members, each as
  /// `HOST:PORT`; must be empty in a build without the package trait `DHT`.
  public var dht: [String] = []
  /// Whether to relay, within a bandwidth budget, between call participants that cannot reach each
  /// other.
  public var relays = true
  /// Whether to announce on the LAN by multicast and broadcast.
  public var lan = true
  /// Whether to publish this node by DNS-SD (Avahi), visible to every host on the network, and to
  /// browse for other nodes.
  public var dnsServiceDiscovery = false
  /// The UDP address to bind, as `HOST:PORT`; nil for all addresses and any free port.
  public var listen: String?
  /// The names of the interfaces to announce on; empty for all.
  public var interfaces: [String] = []
  /// The directory for recordings of received media; nil for no recordings.
  public var recordDirectory: String?
  /// The directory with the identity and the store; nil for the XDG data directory.
  public var dataDirectory: String?
  /// Whether to use a temporary identity and store nothing; ignored if `dataDirectory` is set.
  public var isEphemeral = false
  /// The logger for decisions, such as a path change with its reason; discards all messages by
  /// default.
  public var logger = Logger(label: "muster.node") { _ in SwiftLogNoOpLogHandler() }
  /// The channel rules that this node applies; tests start nodes with altered rules.
  package var policy = ChannelPolicy.standard

  /// A configuration without channels and devices that uses all network interfaces.
  public init() {}
}
