import MusterBase
import MusterMesh
import MusterWire

/// Everyone who can hear everyone agrees: all are linked, rosters are equal, there is one call.
public enum AgreementChecker {
  /// One node's picture of its channel.
  public struct View: Equatable, Sendable {
    public var own: Member
    public var members: [Member]
    public var linked: [NodeID]
    public var call: ActiveCall?

    public init(own: Member, members: [Member], linked: [NodeID], call: ActiveCall?) {
      self.own = own
      self.members = members
      self.linked = linked
      self.call = call
    }
  }

  /// The first thing that these nodes, all the members of one channel, do not agree about.
  public static func disagreement(among views: [View]) -> String? {
    let all = views.map(\.own).sorted { $0.id < $1.id }.map(settled)
    let inCall = all.filter(\.isInCall).map(\.id)
    for view in views {
      let name = view.own.name
      let others = all.filter { $0.id != view.own.id }
      guard view.linked.sorted() == others.map(\.id) else {
        return "\(name) is linked to \(view.linked.count) of \(others.count)"
      }
      if let fault = difference(view.members.map(settled), others) { return "\(name) \(fault)" }
      guard view.call?.participants ?? [] == inCall else {
        return "\(name) sees \(view.call?.participants.count ?? 0) of \(inCall.count) in the call"
      }
      guard view.call?.info == views.first?.call?.info else { return "\(name) has another call" }
      if let mine = view.own.call, mine != view.call?.info {
        return "\(name) is in a call other than the one it sees"
      }
    }
    return nil
  }

  private static func difference(_ known: [Member], _ actual: [Member]) -> String? {
    guard known.map(\.id) == actual.map(\.id) else {
      return "knows \(known.count) members of \(actual.count)"
    }
    let wrong = zip(known, actual).first { $0.0 != $0.1 }
    return wrong.map { "has an old hello of \($0.1.name)" }
  }

  /// Who speaks right now is always a little old.
  private static func settled(_ member: Member) -> Member {
    var member = member
    member.flags.remove(.speaking)
    return member
  }
}
