import Logging
import MusterBase
import MusterChannel
import MusterCore
import MusterCrypto
import MusterWire

/// The settings of a node, fixed at its start.
public struct Configuration: Sendable {
  /// A channel to join.
  public struct Channel: Sendable {
    /// The channel's name, 1 to `Limits.channelNameBytes` bytes of text without control characters.
    public var name: String
    /// The secret or the invite.
    public var source: Source

    /// A channel by its name, and its secret or invite.
    public init(name: String, source: Source) {
      self.name = name
      self.source = source
    }

    /// The source of the channel's key.
    public enum Source: Sendable {
      /// The channel that is remembered under this name; else the open one of this key.
      case openOrStored(ChannelKey)
      /// The open channel of this key.
      case open(ChannelKey)
      case invite(Invite)
    }
  }

  /// The display name that members see.
  public var name = "member"
  /// The channels to join at the start; at most `Limits.channels`.
  public var channels: [Channel] = []
  /// Start or join the call of every channel at once.
  public var call = false
  /// `camera[:PATH]`, `test[:WxH@FPS]` or a file; nil for none.
  public var video: String?
  /// Source of the second video stream, the share: `test[:WxH@FPS]` or a file; nil for none.
  public var share: String?
  /// `mic[:PCM]`, `tone` or a file; nil for none.
  public var audio: String?
  /// `default`, an ALSA PCM or a file; nil for none.
  public var speaker: String?
  /// Enter every channel with the microphone switched off.
  public var audioMuted = false
  /// Enter every channel with the camera switched off.
  public var videoMuted = false
  /// Caps the top layer of the camera, in kbit/s.
  public var videoBitrate: Int?
  /// The largest resolution requested of others, for each of their video streams.
  public var maxVideo: VideoSize?
  /// `HOST:PORT` of nodes to look for besides the LAN.
  public var peers: [String] = []
  /// `HOST:PORT` of rendezvous where members beyond the LAN are looked for.
  public var rendezvous: [String] = []
  /// Be a rendezvous for others, too.
  public var offersRendezvous = false
  /// Have the gateway let others in, if this node looks for them beyond its LAN.
  public var mapsPorts = true
  /// `HOST:PORT` of nodes of an OpenDHT network in which members are looked for, by which this node
  /// becomes one of it; an error in a build without the trait DHT.
  public var dht: [String] = []
  /// Relay, within a budget, for participants of a call that cannot reach each other.
  public var relays = true
  /// Announce on the LAN by multicast and broadcast.
  public var lan = true
  /// Publish this node by DNS-SD (Avahi), visible to everyone on the network, and browse for
  /// others.
  public var dnsServiceDiscovery = false
  /// `HOST:PORT` to bind; nil for all addresses and any free port.
  public var listen: String?
  /// Interfaces to announce on; empty for all.
  public var interfaces: [String] = []
  /// Where to write what is received; nil for nowhere.
  public var recordDirectory: String?
  /// Where the identity is kept; nil for the XDG data directory.
  public var dataDirectory: String?
  /// Use an identity in memory and no directory at all.
  public var isEphemeral = false
  /// Where decisions are recorded, such as a changed path with its reason; nowhere by default.
  public var logger = Logger(label: "muster.node") { _ in SwiftLogNoOpLogHandler() }
  /// How the rules of channels are applied: tests of other nodes start patched ones.
  package var policy = ChannelPolicy.standard

  /// A node in no channel, without devices, on every interface.
  public init() {}
}
