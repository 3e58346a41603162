import CAvahi
import MusterBase

/// Methods for publishing this node's service.
extension AvahiSession {
  /// Publishes the service if it is not published; returns the daemon's error, if any.
  package func publish() -> MusterError? {
    guard let client else { return nil }
    switch groupState {
    case AVAHI_ENTRY_GROUP_COLLISION:
      withdraw()
      instanceName = Self.randomName()
    case AVAHI_ENTRY_GROUP_FAILURE: withdraw()
    default: break
    }
    guard group == nil, !usedInterfaces.isEmpty else { return nil }
    groupState = AVAHI_ENTRY_GROUP_UNCOMMITED
    group = avahi_entry_group_new(
      client,
      { _, state, me in
        // The state is handled by the next `check`, so that a host that contests every name causes
        // no busy loop.
        AvahiSession.of(me).groupState = state
      }, context)
    guard let group else { return refusal(avahi_client_errno(client)) }
    let text = avahi_string_list_add(nil, Self.serviceText)
    defer { avahi_string_list_free(text) }
    for interface in usedInterfaces {
      let code = avahi_entry_group_add_service_strlst(
        group, interface, Int32(AVAHI_PROTO_UNSPEC), AvahiPublishFlags(0), instanceName,
        Self.serviceType, nil, nil, port, text)
      if code < 0 { return refusal(code) }
    }
    let code = avahi_entry_group_commit(group)
    return code < 0 ? refusal(code) : nil
  }

  /// Withdraws the service.
  package func withdraw() {
    if let group { avahi_entry_group_free(group) }
    group = nil
    groupState = AVAHI_ENTRY_GROUP_UNCOMMITED
  }

  private func refusal(_ code: Int32) -> MusterError {
    withdraw()
    return MusterError(
      "Avahi does not publish this node (\(Self.text(of: code)))",
      hint: "see what avahi-daemon.conf says on publishing and interfaces")
  }
}
