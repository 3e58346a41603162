import MusterBase
import MusterChannel
import MusterCore
import MusterWire

extension Moderation {
  /// The moderation in one sentence, for the terminal and the page of `own`. `name` gives the names
  /// of the other members.
  public func sentence(
    by author: NodeID, for own: NodeID, name: (NodeID) -> String
  ) -> String {
    let who = author == own ? "you" : name(author)
    let whom = member == own ? "you" : name(member)
    guard !actions.contains(.remove) else { return "\(who) removed \(whom) from the call" }
    let sentence = "\(who) muted \(whom) for everyone (\(actions.muted.words))"
    return member == own ? sentence + "; unmute when you like" : sentence
  }
}
