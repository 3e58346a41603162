import Muster

/// The question to a user who is about to end calls for others: by leaving, or quitting, as their
/// initiator.
package struct LeaveQuestion: Equatable {
  /// What the user has asked for.
  package enum Request {
    /// To leave the call of the channel that keys apply to.
    case leaveCall
    /// To quit, and so leave all calls.
    case quit
  }

  /// An answer, by its key.
  package enum Answer: Equatable {
    /// The calls end for all.
    case endForAll
    /// The calls go on under others, where others may lead them.
    case handOver
    /// Nothing changes.
    case stay
  }

  let request: Request

  /// The calls in which others would be left without their initiator.
  func calls(
    in channels: [MusterNode.ChannelView], active: Int
  ) -> [MusterNode.ChannelView] {
    let asked =
      request == .quit
      ? channels : channels.indices.contains(active) ? [channels[active]] : []
    return asked.filter { channel in
      guard channel.isInCall, let call = channel.call else { return false }
      return call.info.initiator == channel.own.id && call.participants.count > 1
    }
  }

  /// The answer that these bytes of input give; nil for none.
  package static func answer(_ input: [UInt8], canHandOver: Bool) -> Answer? {
    switch input {
    case [UInt8(ascii: "e")]: .endForAll
    case [UInt8(ascii: "h")] where canHandOver: .handOver
    case [0x1B]: .stay
    default: nil
    }
  }

  /// What stands in place of the keys, for `calls` of which there is at least one.
  func lines(for calls: [MusterNode.ChannelView]) -> (statement: String, keys: [String]) {
    let names = calls.map(\.name).joined(separator: ", ")
    let what = calls.count == 1 ? "the call in \(names)" : "calls in \(names)"
    let then = request == .quit ? "quits" : "leaves"
    var keys = ["[e] ends \(calls.count == 1 ? "it" : "them") for all and \(then)"]
    let heirs = calls.compactMap { channel in
      channel.members.first { $0.id == channel.successor }?.name
    }
    if let first = heirs.first {
      let whom = heirs.count == 1 ? first : "others"
      keys.append("[h] hands \(calls.count == 1 ? "it" : "them") over to \(whom) and \(then)")
    }
    return ("You lead \(what).", keys + ["[Esc] stays"])
  }
}
