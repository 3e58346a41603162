import MusterBase
import MusterCore

/// Methods that serve the control socket, over which other processes of the same user send
/// commands.
extension MusterNode {
  func openControl() async {
    guard let dataDirectory else { return }
    do {
      control = try await ControlSocket.open(in: dataDirectory) { [weak self] command in
        guard let self else {
          return .failure(MusterError("the node is about to end", hint: "try again"))
        }
        do throws(MusterError) {
          return .success(try await self.perform(command, from: .controlSocket))
        } catch { return .failure(error) }
      }
    } catch { emit(.warning(error)) }
  }

  /// Carries out a request and waits until its changes are durable; only then are the changes sent
  /// to other members.
  func administer(
    _ request: Administration.Request
  ) async throws(MusterError) -> Administration.Reply {
    var reply = Administration.Reply()
    if request.verb == .diagnose {
      reply.node = diagnostics()
      return reply
    }
    if request.verb == .ping {
      reply.ping = try await ping(request.member ?? "", in: request.channel)
      return reply
    }
    guard let store else {
      throw MusterError("this node keeps nothing", hint: "start it with --data")
    }
    await takeStoreTurn()
    defer { storeTurns.end() }
    let joined = node.channelIDs
    let stored = try await store.read {
      try RequestedChannels(for: request, besides: joined, in: $0)
    }
    guard !isStopping else { throw MusterError("the node is about to end", hint: "try again") }
    var administrator = Administrator(stored, ownName: node.configuration.name)
    let before = node.channelIDs
    let result = Result<Administration.Reply, MusterError> { () throws(MusterError) in
      try administrator.perform(request, &node, at: now)
    }
    // Leaves the channels that were joined for this request only.
    for channel in node.channelIDs where !before.contains(channel) {
      administrator.take(node.finishLeaving(channel, at: now))
    }
    perform(administrator.outputs)
    var failure: MusterError?
    do { try await store.write(administrator.changes) } catch { failure = error }
    for commit in administrator.writes.commits {
      perform(node.finish(commit.id, isDurable: failure == nil, at: now))
    }
    reply = try result.get()
    if let failure { throw failure }
    if let verified = administrator.verified { trust[verified.channel]?.verify(verified.member) }
    return reply
  }
}
