import CAvahi
import MusterBase
import MusterSystem

/// DNS-SD (RFC 6763) through the Avahi daemon: publishes this node's service and finds the services
/// of other nodes.
///
/// Calls to the daemon can block, so they run on Avahi's thread. Callbacks only record the new
/// state; `check`, which runs at the start and then every 5 s, connects, publishes and browses as
/// needed, also after a later start or restart of the daemon.
package final class AvahiSession: @unchecked Sendable {
  /// The DNS-SD service type.
  package static let serviceType = "_muster._udp"
  /// The TXT record. It contains nothing that identifies the node or its channels.
  package static let serviceText = "v=1"

  /// The interval of `check`.
  private static let checkMilliseconds: UInt32 = 5000
  /// The delay of `check` after a lost connection; a restarting daemon is usually back by then,
  /// which avoids a warning.
  private static let restartMilliseconds: UInt32 = 1000

  /// The UDP port that is published.
  package let port: UInt16
  /// The names of the interfaces to use; empty for all.
  private let interfaces: [String]
  /// The callback that receives the addresses of all other services after each change.
  package let onChange: @Sendable ([Address]) -> Void
  private let onWarning: @Sendable (MusterError) -> Void

  // All properties below are confined to Avahi's thread, and to `init` and `stop` before and after
  // that thread runs.

  private var poll: OpaquePointer?
  private var timer: OpaquePointer?
  /// Avahi's client; nil while disconnected.
  package var client: OpaquePointer?
  private var clientState = AVAHI_CLIENT_CONNECTING
  /// The indices of the interfaces in use, as given to the daemon.
  package var usedInterfaces: [Int32] = []
  /// Avahi's entry group of the published service.
  package var group: OpaquePointer?
  /// The group's state as last reported.
  package var groupState = AVAHI_ENTRY_GROUP_UNCOMMITED
  /// The published instance name: random, new in every process, independent of node and machine.
  package var instanceName = AvahiSession.randomName()
  /// Avahi's browsers, one per interface.
  package var browsers: [OpaquePointer] = []
  /// Whether a browser has failed.
  package var hasLostBrowser = false
  /// The time at which browsing was last started.
  package var browsedAt = Instant.zero
  /// The services found.
  package var found = FoundServices()
  /// The addresses reported last.
  package var reported: [Address] = []
  private var warned: MusterError?

  /// Starts Avahi's thread. `onChange` receives the addresses of all other services after each
  /// change; `onWarning` receives an error when it first occurs. Both are called on Avahi's thread.
  package init(
    port: UInt16, interfaces: [String], onChange: @escaping @Sendable ([Address]) -> Void,
    onWarning: @escaping @Sendable (MusterError) -> Void
  ) {
    self.port = port
    self.interfaces = interfaces
    self.onChange = onChange
    self.onWarning = onWarning
    poll = avahi_threaded_poll_new()
    guard let poll, let api = avahi_threaded_poll_get(poll) else { return }
    // Avahi's thread holds a reference until `stop`.
    let me = Unmanaged.passRetained(self).toOpaque()
    var atOnce = timeval()
    timer = api.pointee.timeout_new(api, &atOnce, { _, me in AvahiSession.of(me).check() }, me)
    avahi_threaded_poll_start(poll)
  }

  /// Withdraws the service and ends Avahi's thread; call once. Blocks while a call to the daemon is
  /// under way.
  package func stop() {
    guard let poll else { return }
    avahi_threaded_poll_stop(poll)
    disconnect()
    avahi_threaded_poll_get(poll).pointee.timeout_free(timer)
    avahi_threaded_poll_free(poll)
    self.poll = nil
    Unmanaged.passUnretained(self).release()
  }

  /// The object passed as the context of a callback.
  package static func of(_ context: UnsafeMutableRawPointer?) -> AvahiSession {
    guard let context else { preconditionFailure("Avahi calls back with what it was given") }
    return Unmanaged<AvahiSession>.fromOpaque(context).takeUnretainedValue()
  }

  /// The context to pass to Avahi's callbacks.
  package var context: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }

  /// A random instance name of 16 hexadecimal digits.
  package static func randomName() -> String {
    let digits = String(UInt64.random(in: 0...UInt64.max), radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }

  // MARK: Periodic check

  /// Schedules the next `check` after `milliseconds`, in place of the time set before.
  private func checkSoon(milliseconds: UInt32 = 0) {
    guard let poll, let timer else { return }
    var due = timeval()
    avahi_elapse_time(&due, milliseconds, 0)
    avahi_threaded_poll_get(poll).pointee.timeout_update(timer, &due)
  }

  private func check() {
    if clientState == AVAHI_CLIENT_FAILURE { disconnect() }
    if client == nil { connect() }
    let wanted = interfaceIndices()
    if wanted != usedInterfaces {
      withdraw()
      stopBrowsing()
      usedInterfaces = wanted
    }
    warn(serve())
    checkSoon(milliseconds: Self.checkMilliseconds)
  }

  /// Connects, publishes and browses as far as the daemon's state permits; returns the first error.
  private func serve() -> MusterError? {
    switch clientState {
    case AVAHI_CLIENT_CONNECTING, AVAHI_CLIENT_FAILURE:
      return MusterError(
        "DNS-SD does not work: Avahi does not run here",
        hint: "start avahi-daemon and dbus, which are used as soon as they run")
    case AVAHI_CLIENT_S_RUNNING:
      let refusals = [browse(), publish()]
      return refusals.lazy.compactMap { $0 }.first
    default:
      // The daemon is choosing a host name without conflicts.
      withdraw()
      return browse()
    }
  }

  /// Creates the client, which waits for the daemon to start; without D-Bus there is no client.
  private func connect() {
    guard let poll else { return }
    client = avahi_client_new(
      avahi_threaded_poll_get(poll), AVAHI_CLIENT_NO_FAIL,
      { _, state, me in AvahiSession.of(me).note(state) }, context, nil)
  }

  /// Frees the client and its objects, which withdraws a published service.
  private func disconnect() {
    if let client { avahi_client_free(client) }
    (client, group, browsers) = (nil, nil, [])
    clientState = AVAHI_CLIENT_CONNECTING
    usedInterfaces = []
    forget()
  }

  private func note(_ state: AvahiClientState) {
    clientState = state
    checkSoon(milliseconds: state == AVAHI_CLIENT_FAILURE ? Self.restartMilliseconds : 0)
  }

  /// The current indices of the chosen interfaces; an interface that reappears has a new index.
  private func interfaceIndices() -> [Int32] {
    guard !interfaces.isEmpty else { return [Int32(AVAHI_IF_UNSPEC)] }
    return interfaces.map { Int32(clamping: if_nametoindex($0)) }.filter { $0 > 0 }
  }

  private func warn(_ trouble: MusterError?) {
    if let trouble, trouble != warned { onWarning(trouble) }
    warned = trouble
  }

  /// Avahi's description of an error code.
  package static func text(of code: Int32) -> String { String(cString: avahi_strerror(code)) }
}
