import MusterBase
import MusterWire

/// Checks that nodes answer member addresses only, whatever non-members send or replay.
///
/// There are two exceptions. An announcement that a node has not received before may come from a
/// new address of its author: the node may verify the address with one challenge, which must not
/// exceed the announcement in size. A forwarded challenge whose original never reached its target
/// is answered once.
public struct SilenceChecker: Sendable {
  private let members: [Address]
  private var announcements = 0
  private var announcementBytes = 0
  private var challenges = 0
  private var challengeBytes = 0
  /// The distinct challenges that non-members have forwarded.
  private var caught: [[UInt8]] = []
  private var answers = 0

  /// `members` are the addresses that nodes may answer without limit.
  public init(members: [Address]) { self.members = members }

  /// Records a datagram that the attacker sends; `source` may be the forged address of a member.
  public mutating func injected(_ datagram: [UInt8], from source: Address) {
    guard !members.contains(source) else { return }
    switch DatagramKind(of: datagram) {
    case .announcement:
      announcements += 1
      announcementBytes += datagram.count
    case .challenge: if !caught.contains(datagram) { caught.append(datagram) }
    default: break
    }
  }

  /// The fault in a datagram that a node sends; nil for none.
  public mutating func sent(_ datagram: [UInt8], to address: Address) -> String? {
    if members.contains(address) { return nil }
    let kind = DatagramKind(of: datagram)
    if kind == .announcement, answers < caught.count {
      answers += 1
      return nil
    }
    guard kind == .challenge else {
      return "\(datagram.count) bytes that begin with \(datagram.first ?? 0) sent to \(address)"
    }
    challenges += 1
    challengeBytes += datagram.count
    return challenges > announcements || challengeBytes > announcementBytes
      ? "\(challenges) challenges for \(announcements) announcements of outsiders" : nil
  }
}
