import MusterBase
import MusterChannel
import MusterCore
import MusterCrypto
import MusterLink
import MusterWire

/// A link end of the adversary: it runs the link protocol with one of the keys, answers pings, and
/// sends whatever it is given.
///
/// A reference type, because a `LinkEngine` cannot be copied.
final class AdversaryPeer {
  /// What a peer has learnt from a datagram, in order.
  enum Output {
    case send([UInt8], to: Address)
    /// A link to a member is up.
    case up(NodeID)
    /// An entry that a member has sent: its own, or any other.
    case entry([UInt8], from: NodeID)
    /// The secret of a later channel key.
    case key([UInt8])
  }

  let address: Address
  let identity: Identity
  private var links: LinkEngine
  /// The keys of the channel that it knows; links are made under the last.
  private(set) var channelKeys: [ChannelKey]
  /// Whether it acknowledges entries, so that it is sent more.
  private let acknowledges: Bool

  init(
    _ key: Adversary.Key, at address: Address, channelKey: ChannelKey, acknowledges: Bool,
    entropy: Entropy, seed: UInt64
  ) {
    self.address = address
    self.acknowledges = acknowledges
    identity = key.identity
    var configuration = LinkEngine.Configuration()
    configuration.capabilities = []
    links = LinkEngine(
      identity: key.identity, bootID: key.bootID, entropy: entropy, seed: seed,
      configuration: configuration)
    channelKeys = [channelKey]
    links.open(channelKey)
  }

  var deadline: Instant? { links.deadline }

  /// The members that it has links to.
  var linked: [NodeID] { links.establishedLinks.map(\.peer) }

  /// Offers a link to a member, under every channel key that it knows.
  func connect(
    to peer: NodeID, bootID: UInt64, at address: Address, now: Instant
  ) -> [Output] {
    var out: [Output] = []
    for key in channelKeys {
      take(
        links.connect(to: peer, bootID: bootID, in: key.keyID, over: .direct(address), now: now),
        at: now, &out)
    }
    return out
  }

  /// Uses a later channel key from now on, too.
  func learn(_ key: ChannelKey) {
    guard !channelKeys.contains(where: { $0.keyID == key.keyID }) else { return }
    channelKeys.append(key)
    links.open(key)
  }

  func receive(_ datagram: [UInt8], from source: Address, at now: Instant) -> [Output] {
    var out: [Output] = []
    take(links.receive(datagram, from: .direct(source), at: now), at: now, &out)
    return out
  }

  func tick(at now: Instant) -> [Output] {
    var out: [Output] = []
    take(links.tick(at: now), at: now, &out)
    return out
  }

  /// Sends control messages over every link, or over those to one member.
  func send(_ messages: [Control], to peer: NodeID? = nil, at now: Instant) -> [Output] {
    var out: [Output] = []
    for link in links.establishedLinks where peer == nil || link.peer == peer {
      send(messages, over: link, at: now, &out)
    }
    return out
  }

  private func send(
    _ messages: [Control], over link: SessionLinkID, at now: Instant, _ out: inout [Output]
  ) {
    let payload = OutgoingPayload(Control.encode(messages))
    guard let sealed = links.seal(payload, on: link, at: now), let to = sealed.route.address
    else { return }
    out.append(.send(sealed.datagram, to: to))
  }

  private func take(
    _ outputs: [LinkEngine.Output], at now: Instant, _ out: inout [Output]
  ) {
    for output in outputs {
      switch output {
      case .send(let datagram, let route):
        if let to = route.address { out.append(.send(datagram, to: to)) }
      case .established(let link, _, _): out.append(.up(link.peer))
      case .delivered(let link, let payload, _, _):
        guard PayloadKind(of: payload) == .control, let messages = try? Control.decode(payload)
        else { continue }
        for message in messages {
          switch message {
          case .ping(let token): send([.pong(token)], over: link, at: now, &out)
          case .entry(let bytes):
            let ids = [SignedEntry.id(of: bytes).prefix]
            if acknowledges { send([.entriesReceived(ids)], over: link, at: now, &out) }
            out.append(.entry(bytes, from: link.peer))
          case .epochKey(let secret, let entry):
            out.append(.entry(entry, from: link.peer))
            out.append(.key(secret))
          default: break
          }
        }
      case .moved, .closed: break
      }
    }
  }
}
