import MusterBase
import MusterCore

/// Requests of the same user's commands to this running node.
extension MusterNode {
  func openControl() async {
    guard let dataDirectory else { return }
    do {
      control = try await ControlSocket.open(in: dataDirectory, on: loop) { [weak self] request in
        guard let self else {
          return .failure(MusterError("the node is about to end", hint: "try again"))
        }
        return await self.administer(request)
      }
    } catch { emit(.warning(error)) }
  }

  /// What is answered is on the disk; only then do others learn of it.
  func administer(
    _ request: Administration.Request
  ) async -> Result<Administration.Reply, MusterError> {
    guard let store else {
      return .failure(MusterError("this node keeps nothing", hint: "start it with --data"))
    }
    var administrator = Administrator(store)
    let before = node.channelIDs
    let result = Result<Administration.Reply, MusterError> { () throws(MusterError) in
      try administrator.perform(request, &node, at: now)
    }
    // A channel that was looked into only is not one that people have joined.
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
    guard case .success = result, let failure else { return result }
    return .failure(failure)
  }
}
