import Muster
import MusterBase

/// Channels and their members as text in columns.
enum ChannelTable {
  typealias Channel = Administration.ChannelSummary
  typealias Member = Administration.MemberSummary
  typealias Invite = Administration.InviteSummary

  /// One line of text per channel.
  static func lines(_ channels: [Channel]) -> [String] {
    let width = 2 + channels.reduce(7) { max($0, Style.columns($1.name)) }
    return channels.map { channel in
      Style.padded(channel.name, to: width) + Style.padded(String(channel.id.prefix(16)), to: 18)
        + Style.padded(kind(channel), to: 16)
        + members(channel)
    }
  }

  private static func kind(_ channel: Channel) -> String {
    channel.isOwner && channel.isCreated ? "created, yours" : channel.isCreated ? "created" : "open"
  }

  private static func members(_ channel: Channel) -> String {
    let count = channel.members.count
    let online = channel.members.filter(\.online).count
    return "\(count) \(count == 1 ? "member" : "members") known, \(online) online"
  }

  /// The details of one channel.
  static func details(_ channel: Channel) -> [String] {
    var rows = [("channel", channel.name), ("id", channel.id)]
    if channel.isCreated {
      let owner = channel.owner.map { String($0.prefix(16)) } ?? "?"
      rows += [
        ("owner", channel.isOwner ? "\(owner) (you)" : owner),
        ("created", Clocks.date(seconds: Int64(clamping: channel.createdAt))),
        ("key", channel.epoch == 0 ? "the first" : "changed \(times(channel.epoch))"),
        ("calls", calls(channel)),
      ]
    } else {
      rows.append(("open", "whoever knows its secret may join, start calls and send"))
    }
    var lines = rows.map { Style.padded($0.0, to: 10) + $0.1 }
    if !channel.members.isEmpty { lines += [""] + table(channel.members) }
    let invites = channel.invites.filter {
      $0.usable || !$0.confirmed.isEmpty || !$0.provisional.isEmpty
    }
    if !invites.isEmpty { lines += [""] + table(invites, channel.members) }
    return lines
  }

  private static func table(_ invites: [Invite], _ members: [Member]) -> [String] {
    let title =
      Style.padded("invite", to: 18) + Style.padded("role", to: 11) + Style.padded("used", to: 16)
      + Style.padded("until", to: 18) + "by"
    return [Style.bold(title)]
      + invites.map { invite in
        let count = invite.confirmed.count + invite.provisional.count
        let used = invite.uses.map { "\(count) of \($0)" } ?? "\(count), unlimited"
        return Style.padded(invite.invite, to: 18) + Style.padded(invite.role, to: 11)
          + Style.padded(used, to: 16)
          + Style.padded(
            invite.usable ? Expiry.text(invite.expiresAt ?? Expiry.never) : "ended", to: 18)
          + people(of: invite, members).joined(separator: ", ")
      }
  }

  /// The names of those who came by an invite, with their ids.
  static func people(of invite: Invite, _ members: [Member]) -> [String] {
    invite.confirmed.map { label($0, members) }.sorted()
      + invite.provisional.map { "\(label($0, members)), not confirmed yet" }.sorted()
  }

  /// A member's name and id; the id alone for a member without a known name.
  static func label(_ id: String, _ members: [Member]) -> String {
    members.first { $0.member == id }?.name.map { "\($0) (\(id))" } ?? id
  }

  private static func times(_ count: UInt32) -> String { count == 1 ? "once" : "\(count) times" }

  private static func calls(_ channel: Channel) -> String {
    let end = channel.callEndsWithInitiator ? "end with" : "go on without"
    let senders = channel.onlyPresentersSend ? "; only presenters send" : ""
    return "\(end) an initiator that vanishes\(senders)"
  }

  private static func table(_ members: [Member]) -> [String] {
    let title =
      Style.padded("member", to: 18) + Style.padded("name", to: 20) + Style.padded("role", to: 11)
      + Style.padded("verified", to: 10) + Style.padded("last seen", to: 18) + "role until"
    let sorted = members.sorted { ($0.name ?? "", $0.member) < ($1.name ?? "", $1.member) }
    return [Style.bold(title)] + sorted.map(line)
  }

  private static func line(_ member: Member) -> String {
    let seen = member.lastSeen.map { Clocks.date(seconds: Int64(clamping: $0)) } ?? "-"
    return Style.padded(member.member, to: 18) + Style.padded(member.name ?? "?", to: 20)
      + Style.padded(member.role, to: 11)
      + Style.padded(member.verified ? "yes" : "no", to: 10)
      + Style.padded(member.online ? "online" : seen, to: 18)
      + Expiry.text(member.expiresAt ?? Expiry.never)
  }
}
