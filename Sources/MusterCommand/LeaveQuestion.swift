import Muster

/// Asks a user whether calls that others are in are to end when this user, who leads them, leaves
/// or quits.
package struct LeaveQuestion: Equatable {
  /// What the user has asked for.
  package enum Request: Equatable {
    /// To leave the call of the channel of this name, which may not be the one that keys apply to
    /// by the time of the answer.
    case leaveCall(channel: String)
    /// To quit, and so leave all calls.
    case quit
  }

  /// An answer, by its key.
  package enum Answer: Equatable {
    /// The calls end for all.
    case endForAll
    /// The calls go on under others.
    case handOver
    /// Nothing changes.
    case stay
  }

  let request: Request

  /// The calls in which others would be left without their initiator.
  func calls(in channels: [MusterNode.ChannelView]) -> [MusterNode.ChannelView] {
    channels.filter { channel in
      if case .leaveCall(let name) = request, name != channel.name { return false }
      guard channel.isInCall, let call = channel.call else { return false }
      return call.info.initiator == channel.own.id && call.participants.count > 1
    }
  }

  /// Whether all of the calls can be handed over: one that cannot would end, unasked.
  static func canHandOver(_ calls: [MusterNode.ChannelView]) -> Bool {
    calls.allSatisfy { $0.successor != nil }
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
    let isOne = calls.count == 1
    let (what, them) = isOne ? ("the call", "it") : ("the calls", "them")
    let names = calls.map(\.name).joined(separator: ", ")
    let then = request == .quit ? "quits" : "leaves"
    var keys = ["[e] ends \(them) for all and \(then)"]
    if Self.canHandOver(calls) {
      let successor = calls.first.flatMap { channel in
        channel.members.first { $0.id == channel.successor }?.name
      }
      keys.append("[h] hands \(them) over to \(isOne ? successor ?? "" : "others") and \(then)")
    }
    return ("You lead \(what) in \(names).", keys + ["[Esc] stays"])
  }
}
