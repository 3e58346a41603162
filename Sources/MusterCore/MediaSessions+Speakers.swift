import MusterBase
import MusterMedia
import MusterWire

/// The dominant speaker of each call, by the audio levels of what is sent and received.
extension MediaSessions {
  /// Adds the level of a participant's packet.
  mutating func noteLevel(
    of packet: RTPHeader, from link: LinkID, at now: Instant, _ out: inout [Output]
  ) {
    guard let level = packet.audioLevel else { return }
    note(level, timestamp: packet.timestamp, of: link.peer, in: link.channel, at: now, &out)
  }

  /// Adds the level of a frame of this node's microphone to the calls to which it is sent.
  mutating func noteOwnLevel(
    _ level: UInt8, timestamp: UInt32, at now: Instant, _ out: inout [Output]
  ) {
    // A level that was noted already, where channels alternate, changes nothing.
    var noted: ChannelID?
    for index in 0..<sessions.count {
      let channel = sessions.keys[index].channel
      let isSent = sessions.read(at: index) { $0.call?.outgoingRights.audio ?? false }
      guard isSent, channel != noted else { continue }
      noted = channel
      note(level, timestamp: timestamp, of: own, in: channel, at: now, &out)
    }
  }

  private mutating func note(
    _ level: UInt8, timestamp: UInt32, of member: NodeID, in channel: ChannelID, at now: Instant,
    _ out: inout [Output]
  ) {
    if speakers[channel] == nil { speakers[channel] = DominantSpeaker() }
    let former = speakers[channel]?.current
    let hasChanged = speakers.update(channel) {
      $0.add(level: level, timestamp: timestamp, of: member, at: now)
    }
    guard hasChanged ?? false else { return }
    out.append(speakerEvent(in: channel))
    if let former {
      _ = sessions.update(LinkID(channel: channel, peer: former)) { $0.call?.spokeAt = now }
    }
    out += updateRequests(at: now)
  }

  /// Forgets a participant with whom media has ended, and the call itself after the last one.
  mutating func forgetSpeaker(_ link: LinkID) -> [Output] {
    let former = speakers[link.channel]?.current
    if sessions.keys.contains(where: { $0.channel == link.channel && isActive($0) }) {
      _ = speakers.update(link.channel) { $0.remove(link.peer) }
    } else {
      speakers[link.channel] = nil
    }
    return speakers[link.channel]?.current == former ? [] : [speakerEvent(in: link.channel)]
  }

  private func speakerEvent(in channel: ChannelID) -> Output {
    .host(.event(.dominantSpeaker(speakers[channel]?.current), in: channel))
  }
}
