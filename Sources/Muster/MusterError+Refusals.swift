import MusterBase
import MusterChannel
import MusterCore
import MusterCrypto
import MusterWire

extension MusterError {
  /// Creates the error message for a refused command.
  init(_ refusal: CommandRefusal) {
    switch refusal {
    case .unknownChannel:
      self.init("this node is not in that channel", hint: "join it first")
    case .unknownMember: self.init("that is no member's key", hint: "ids are in member.joined")
    case .openChannel:
      self.init(
        "this is an open channel: whoever knows its secret is a member, and nobody can be removed",
        hint: "roles and removal need a channel made with muster channel create")
    case .notAllowed(let capability, let role):
      self.init(
        "the role \(role.name) does not allow to \(capability.words)",
        hint: "ask the channel's owner for another role")
    case .notMember(let reason):
      let error = MusterError(reason, channel: "the channel")
      self.init(error.message, hint: error.hint)
    case .ownerStays:
      self.init("the owner's own role stays", hint: "name another member", kind: .usage)
    case .tooLong:
      self.init(
        "the text is too long", hint: "\(Limits.textBytes) bytes are the most", kind: .usage)
    case .empty: self.init("the text is empty", hint: "write something", kind: .usage)
    case .tooManyEpochs:
      self.init(
        "the channel's key was changed \(Limits.epochs) times", hint: "create a new channel")
    case .noCall:
      self.init("there is no call to join", hint: "start one with start-call")
    case .noSuccessor(let endsWithInitiator):
      self.init(
        endsWithInitiator
          ? "calls in this channel end with their initiator, so that none can be handed over"
          : "nobody else in the call may lead it",
        hint: endsWithInitiator
          ? "without \"handOver\", leave-call ends it for all"
          : "make somebody in it a presenter, or end it for all, without \"handOver\"")
    case .notInCall:
      self.init("that member is not in the call", hint: "\"participants\" in call events are")
    case .notLower(let role):
      self.init(
        "that member is \(role.name), which is not below this node's role",
        hint: "ask the channel's owner")
    case .removedFromCall(let remover):
      self.init(
        "this node was removed from this call by \(remover.short)",
        hint: "it can join the next call")
    case .restored:
      self.init(
        "this node was restored from a backup and knows of no member yet whether there is a newer "
          + "key: members would not find a node that changes an older one",
        hint: "try again once it has met a member, or use --force")
    case .busy:
      self.init("earlier changes are still being written", hint: "try again; check the disk")
    }
  }

  /// Creates the error for a commit that could not be written and therefore had no effect.
  init(unwritten subject: CommitSubject) {
    self.init(
      "\(subject.effect): it could not be written", hint: "check the disk and its free space")
  }

  /// Creates the error for entries that the channel does not keep and that therefore had no effect.
  init(notKept subject: CommitSubject) {
    self.init(
      "\(subject.effect): the share of the channel for this node is used up",
      hint: "others share it who came by the same invite; ask the channel's owner for a role")
  }

  /// Creates the notice that the key of `channel` was changed because the roles of the named
  /// members have expired.
  init(expired names: [String], _ channel: String) {
    let whose = names.count > 3 ? "\(names.count) members" : names.joined(separator: ", ")
    self.init(
      "the key of \(channel) was changed, because a role has expired: \(whose) can no longer read",
      hint: "muster channel grant gives a role again")
  }

  /// Creates the notice that this node's role ends in so many seconds.
  init(roleEnds seconds: UInt64, isProvisional: Bool, channel: String) {
    let time = seconds > 90 ? "\((seconds + 30) / 60) minutes" : "\(seconds) s"
    self.init(
      "the role of this node in \(channel) ends in \(time), and with it its part in the call",
      hint: isProvisional
        ? "it ends with the invite, unless the node of the invite's owner is met before"
        : "ask the channel's owner to give it for longer")
  }

  /// Creates the notice that media stay off although this node's new role permits them.
  init(held media: OwnMedia, _ role: Role, channel: String) {
    self.init(
      "this node is now \(role.name) in \(channel); off until you turn it on: \(media.words)",
      hint: "unmute on the page, by key or with the command unmute")
  }

  /// Creates the error for the end of a role that the channel's owner had given for a time.
  init(roleEndedIn channel: String) {
    self.init(
      "the role of this node in \(channel) has expired", hint: "ask its owner to give it again")
  }

  /// Creates the error for the reason why other members do not accept this node.
  init(_ reason: Refusal, channel: String) {
    switch reason {
    case .removed:
      self.init(
        "this node was removed from \(channel)", hint: "ask its owner for a new invite")
    case .inviteOutdated:
      self.init(
        "the invite to \(channel) is from before its key was changed",
        hint: "ask its owner for a new one")
    case .expired:
      self.init(
        "the invite to \(channel), or the role it gave, has expired",
        hint: "ask its owner for a new one")
    case .inviteUsedUp:
      self.init(
        "the invite to \(channel) has been used by others, as often as it may be",
        hint: "ask its owner for a new one")
    case .noGrant:
      self.init(
        "\(channel) knows no invite and no role of this node",
        hint: "ask its owner for an invite")
    case .equivocated:
      self.init(
        "this node's key was used twice at the same time, and \(channel) trusts it no more",
        hint: "use a fresh --data directory and ask for an invite")
    case .unknown:
      self.init("\(channel) does not take this node for a member", hint: "ask its owner why")
    }
  }
}

extension CommitSubject {
  /// What failed with the commit.
  fileprivate var effect: String {
    switch self {
    case .message: "the message was not sent"
    case .role: "the role was not changed"
    case .key: "the channel's key was not changed, and nobody was removed"
    case .invite: "the invite is not valid"
    case .call: "the call was neither started nor taken over"
    case .callEnd: "the call goes on without this node"
    case .moderation: "nobody was muted or removed from the call"
    }
  }
}

extension OwnMedia {
  var words: String {
    [(OwnMedia.audio, "the microphone"), (.video, "the camera"), (.share, "the share")]
      .filter { contains($0.0) }.map(\.1).joined(separator: ", ")
  }
}

extension Capability {
  fileprivate var words: String {
    switch self {
    case .receive: "listen"
    case .joinCall: "join the call"
    case .sendAudio: "send audio"
    case .sendVideo: "send video"
    case .sendText: "write messages"
    case .startCall: "start a call"
    case .share: "share the screen"
    case .handOver: "take over a call"
    case .moderate: "mute others or remove them from the call"
    case .grant: "give roles"
    }
  }
}
