import Logging
import MusterBase
import MusterCore

/// The path of a link: the peer's address, or the relaying member.
struct LinkPath: Equatable {
  var address: Address?
  var via: NodeID?

  var text: String { via.map { "via \($0.short)" } ?? address?.description ?? "nowhere" }
}

/// The log of the node's decisions, each with its reason, enabled by `--log-level`.
extension MusterNode {
  /// Logs the decision that an event reports; events without a decision, such as messages, are not
  /// logged.
  func log(_ event: Event) {
    switch event {
    case .linkUp(let channel, let member, let address, let via):
      let path = LinkPath(address: address, via: via)
      decided("link up", channel, member, ["path": "\(path.text)"])
    case .linkDown(let channel, let member, let reason):
      decided("link down", channel, member, ["reason": "\(reason)"])
    case .memberLeft(let channel, let member, let reason):
      decided("member left", channel, member.id, ["reason": "\(reason.rawValue)"])
    case .callStarted(let channel, let call):
      decided("call started", channel, call.info.initiator, ["call": "\(call.info.id)"])
    case .callEnded(let channel, let call, let reason):
      decided("call ended", channel, call.initiator, ["call": "\(call.id)", "reason": "\(reason)"])
    case .callHandedOver(let channel, let call):
      decided(
        "call handed over", channel, call.info.initiator,
        ["call": "\(call.info.id)", "reason": "its initiator has left it, or vanished"])
    case .callModerated(let channel, let moderation, let author):
      let record = CallModerationRecord(moderation, by: author)
      decided(
        "call moderated", channel, moderation.member,
        ["by": "\(record.by)", "muted": "\(record.muted)", "removed": "\(record.removed)"])
    case .callState(let channel, let state):
      logger.info("call state", metadata: ["channel": "\(channel)", "state": "\(state.rawValue)"])
    case .callCPU(let channel, let step):
      logger.info("short of CPU", metadata: ["channel": "\(channel)", "step": "\(step)"])
    case .layer(let channel, let member, let stream, let direction, let from, let to, let why):
      decided(
        "layer changed", channel, member,
        [
          "stream": "\(stream)", "direction": "\(direction.rawValue)",
          "from": "\(LayerRecord.text(from))",
          "to": "\(LayerRecord.text(to))", "reason": "\(why)",
        ])
    case .warning(let error): logger.notice("warning: \(error)")
    case .error(let error, let command):
      logger.notice("error: \(error)", metadata: command.map { ["command": "\($0)"] })
    case .memberJoined, .memberUpdated, .callJoined, .callLeft, .callSpeaker, .message, .firstFrame,
      .statistics:
      break
    }
  }

  func decided(
    _ what: Logger.Message, _ channel: String, _ member: NodeID, _ more: Logger.Metadata
  ) {
    var metadata = more
    metadata["channel"] = "\(channel)"
    metadata["member"] = "\(member.short)"
    logger.info(what, metadata: metadata)
  }

  /// Logs the links whose path has changed since the previous call, one second ago.
  func logPaths(_ peers: [PeerStatistics]) {
    for peer in peers {
      let path = LinkPath(address: peer.via == nil ? peer.address : nil, via: peer.via)
      let former = meters.paths.updateValue(path, forKey: peer.link)
      guard let former, former != path else { continue }
      let reason =
        switch (former.via, path.via) {
        case (nil, nil): "the member's address has changed"
        case (nil, _): "the direct path does not answer"
        case (_, nil): "a direct path was validated"
        default: "another member relays with a shorter round trip, or the former one has gone"
        }
      decided(
        "path changed", node.name(of: peer.link.channel) ?? "", peer.link.peer,
        ["from": "\(former.text)", "to": "\(path.text)", "reason": "\(reason)"])
    }
  }
}
