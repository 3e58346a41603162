import MusterBase
import MusterChannel
import MusterWire

/// Checks that nodes with links to each other agree about the roster with its roles, the call, the
/// key epoch, and all entries of the channel's document.
public enum AgreementChecker {
  /// One node's view of its channel.
  public struct View: Equatable, Sendable {
    /// The node itself as a member of the channel, with its role.
    public var own: Member
    /// All other members that the node knows to be present, in ascending order of their ids.
    public var members: [Member]
    /// The peers that the node has a link to, direct or relayed.
    public var linked: [NodeID]
    /// The call that the node considers active; nil for none.
    public var call: ActiveCall?
    /// The digest of the node's document; nil without a document.
    public var digest: DocumentDigest?
    /// The epoch of the node's key.
    public var epoch: UInt32
    /// Whether the node is patched: its own view is not checked, but all other nodes must agree
    /// about its presence and role.
    public var isLawless: Bool

    /// Only views of one channel, taken at one time, can be compared.
    public init(
      own: Member, members: [Member], linked: [NodeID], call: ActiveCall?,
      digest: DocumentDigest? = nil, epoch: UInt32 = 0, isLawless: Bool = false
    ) {
      self.own = own
      self.members = members
      self.linked = linked
      self.call = call
      self.digest = digest
      self.epoch = epoch
      self.isLawless = isLawless
    }

    fileprivate func isNeighbour(of other: View) -> Bool {
      linked.contains(other.own.id) && members.contains { $0.id == other.own.id }
    }
  }

  /// The views, split into connected groups. Two nodes are connected if each has a link to the
  /// other and considers the other a member.
  public static func groups(_ views: [View]) -> [[View]] {
    var left = views
    var groups: [[View]] = []
    while !left.isEmpty {
      var group = [left.removeFirst()]
      var next = 0
      while next < group.count {
        let index = group[next]
        let near = left.filter { $0.isNeighbour(of: index) && index.isNeighbour(of: $0) }
        left.removeAll { view in near.contains { $0.own.id == view.own.id } }
        group += near
        next += 1
      }
      groups.append(group)
    }
    return groups
  }

  /// The first disagreement between nodes of one group; nil for none.
  public static func disagreement(among views: [View]) -> String? {
    for group in groups(views) {
      if let fault = disagreement(in: group) { return fault }
    }
    return nil
  }

  private static func disagreement(in group: [View]) -> String? {
    let all = group.map(\.own).sorted { $0.id < $1.id }.map(settled)
    let judged = group.filter { !$0.isLawless }
    for view in judged {
      let name = view.own.name
      let others = all.filter { $0.id != view.own.id }
      if let fault = difference(view.members.map(settled), others) { return "\(name) \(fault)" }
      if let fault = callFault(of: view, all, judged) { return "\(name) \(fault)" }
      guard view.epoch == judged.first?.epoch else {
        return "\(name) has key \(view.epoch), not \(judged.first?.epoch ?? 0)"
      }
      guard view.digest == judged.first?.digest else {
        return "\(name) has another document: \(view.digest?.count ?? 0) entries, not "
          + "\(judged.first?.digest?.count ?? 0)"
      }
    }
    return nil
  }

  private static func callFault(of view: View, _ all: [Member], _ judged: [View]) -> String? {
    // A call that nobody may lead is seen by those who are in it, and not by all others.
    let led = judged.first { $0.call?.isLed ?? false }
    let same = judged.first { $0.call?.info.id == view.call?.info.id }
    guard view.call == (led ?? same)?.call else {
      return view.call?.info == (led ?? same)?.call?.info
        ? "sees others in the call" : "has another call"
    }
    if let mine = view.own.call, mine != view.call?.info.id {
      return "is in a call other than the one it sees"
    }
    guard let call = view.call else { return nil }
    let inCall = all.filter { $0.call == call.info.id }.map(\.id)
    guard call.participants == inCall else {
      return "sees \(call.participants.count) of \(inCall.count) in the call"
    }
    guard call.byPresence.sorted() == inCall else { return "has a wrong order of participants" }
    return nil
  }

  private static func difference(_ known: [Member], _ actual: [Member]) -> String? {
    guard known.map(\.id) == actual.map(\.id) else {
      return "knows \(known.count) members of \(actual.count)"
    }
    let wrong = zip(known, actual).first { $0.0 != $0.1 }
    return wrong.map { known, actual in
      known.role == actual.role
        ? "has an old presence of \(known.name)"
        : "takes \(known.name) for \(known.role.name), who thinks it is \(actual.role.name)"
    }
  }

  /// The member without its speaking flag, which is rate-limited and may therefore differ between
  /// views.
  private static func settled(_ member: Member) -> Member {
    var member = member
    member.flags.remove(.speaking)
    return member
  }
}
