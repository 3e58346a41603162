import MusterBase
import MusterCore

/// Methods that serve the control socket, over which other processes of the same user send
/// commands.
extension MusterNode {
  func openControl() async {
    guard let dataDirectory else { return }
    do {
      control = try await ControlSocket.open(in: dataDirectory, on: loop) { [weak self] command in
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
    var administrator = Administrator(store, ownName: node.configuration.name)
    let before = node.channelIDs
    let result = Result<Administration.Reply, MusterError> { () throws(MusterError) in
      try administrator.perform(request, &node, at: now)
    }
    // Leaves the channels that were joined for this request only.
    for channel in node.channelIDs where !before.contains(channel) {
      administrator.outputs += node.finishLeaving(channel, at: now)
    }
    perform(administrator.otherOutputs)
    let failure = await write(administrator.changes)
    for commit in administrator.commits {
      perform(node.finish(commit, isDurable: failure == nil, at: now))
    }
    if request.verb == .verify {
      for channel in before { loadTrust(of: channel) }
    }
    reply = try result.get()
    if let failure { throw failure }
    return reply
  }
}
