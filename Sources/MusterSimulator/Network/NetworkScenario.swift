import MusterBase

/// A call over bad access links, as data: the simulator and the lab's switch run the same one.
public struct NetworkScenario: Equatable, Sendable {
  /// Conditions of one direction of an access link that hold from a time on.
  public struct Step: Equatable, Sendable {
    /// The time since the start of the scenario.
    public var at: Duration
    public var conditions: PathConditions

    package init(at: Duration, conditions: PathConditions) {
      self.at = at
      self.conditions = conditions
    }
  }

  /// A host with a node that takes part in the call.
  public struct Participant: Equatable, Sendable {
    public var name: String
    /// The time at which the node joins.
    public var joinsAt = Duration.zero
    /// The size of the camera's picture; nil without a camera.
    public var video: VideoSize?
    /// The bitrate of the largest layer in kbit/s; nil for that of `LayerLadder`.
    public var videoKilobitsPerSecond: Int?
    /// Whether the node sends audio.
    public var speaks = true
    /// Whether the node requests the others' video; every node plays their audio.
    public var watches = true
    /// The interval at which the camera's picture changes to another scene; nil for never.
    public var cuts: Duration?
    /// The access link from the host into the network, in order of time; ideal without a step.
    public var up: [Step] = []
    /// The access link from the network to the host.
    public var down: [Step] = []
    /// The participants, by index, with whom datagrams are exchanged in neither direction.
    package var severedFrom: [Int] = []

    package init(_ name: String, video: VideoSize? = nil) {
      self.name = name
      self.video = video
    }
  }

  /// A TCP CUBIC flow that always has data to send, from an ideal host to a participant.
  public struct TCPFlow: Equatable, Sendable {
    /// The index of the receiving participant.
    public var to: Int
    public var startsAt: Duration
    /// The time from which on it sends nothing new; nil for the end of the scenario.
    public var endsAt: Duration?
  }

  /// The name for the command line.
  public let name: String
  /// What the scenario is, in one line.
  public let summary: String
  public let duration: Duration
  public let participants: [Participant]
  public let tcp: TCPFlow?

  package init(
    _ name: String, _ summary: String, seconds: Int, _ participants: [Participant],
    tcp: TCPFlow? = nil
  ) {
    self.name = name
    self.summary = summary
    duration = .seconds(seconds)
    self.participants = participants
    self.tcp = tcp
  }
}

extension NetworkScenario {
  /// The rate available from one participant to another in kbit/s, on average from `start` to
  /// `end`; nil where neither access link has a bottleneck.
  public func capacity(
    from sender: Int, to receiver: Int, between start: Duration, and end: Duration
  ) -> Double? {
    var changes = (participants[sender].up + participants[receiver].down).map(\.at)
    changes = [start] + changes.filter { start < $0 && $0 < end }.sorted() + [end]
    var bits = 0.0
    for (begin, next) in zip(changes, changes.dropFirst()) {
      guard let rate = rate(from: sender, to: receiver, at: begin) else { return nil }
      bits += Double(rate) * (next - begin).inSeconds
    }
    return end > start ? bits / (end - start).inSeconds : nil
  }

  /// The rate of the bottleneck from one participant to another in kbit/s; nil for none.
  public func rate(from sender: Int, to receiver: Int, at time: Duration) -> Int? {
    let links = [participants[sender].up, participants[receiver].down]
    return links.compactMap { steps in
      steps.last { $0.at <= time }?.conditions.throughput
    }.min()
  }
}
