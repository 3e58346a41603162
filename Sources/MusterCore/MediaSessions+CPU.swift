import MusterBase
import MusterMedia
import MusterWire

/// The CPU as a budget: what this node sends and receives follows how long its work waits.
extension MediaSessions {
  /// Notes the time for which a datagram has waited, less that for which it was left to gather.
  mutating func noteLoopWait(_ wait: Duration) {
    overuse.noteLoopWait(wait - local.streams.adaptation.coalescing)
  }

  /// Whether this node gives something up for lack of CPU.
  var isShortOfCPU: Bool { local.streams.adaptation.step > .nothing }

  /// Takes steps, or takes them back, when a window of the detector ends.
  mutating func adaptToCPU(at now: Instant) -> [Output] {
    guard let verdict = overuse.verdict(at: now),
      local.streams.adaptation.take(verdict, at: now)
    else { return [] }
    var out: [Output] = []
    for channel in channelsInCall {
      out.append(.host(.event(.cpu(local.streams.adaptation.step), in: channel)))
    }
    return out + updateRequests(at: now) + selectLayers(at: now)
  }

  /// Notes that media with a member has ended.
  mutating func hasLessToDo() {
    if isInCall { return local.streams.adaptation.hasLessToDo() }
    overuse.end()
    local.streams.adaptation = CPUAdaptation()
  }

  private var channelsInCall: [ChannelID] {
    var found: [ChannelID] = []
    for link in sessions.keys where isActive(link) && found.last != link.channel {
      if !found.contains(link.channel) { found.append(link.channel) }
    }
    return found
  }
}
