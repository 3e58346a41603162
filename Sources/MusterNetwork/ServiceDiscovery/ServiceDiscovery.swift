import CAvahi
import Glibc
import MusterBase

/// DNS-SD by way of the Avahi daemon: tells everyone on the network that a node is here, and hears
/// of others.
///
/// Calls to the daemon may block, so all of it happens on a thread of Avahi's. What is called back
/// there is only noted; `check` acts on it, at once and every few seconds: it connects, publishes
/// and browses whatever of that is not done yet. So a daemon that comes later, or again, is used.
package final class ServiceDiscovery: @unchecked Sendable {
  package static let serviceType = "_muster._udp"
  /// All that is told besides the port. Neither the channel nor anything of the node is.
  package static let serviceText = "v=1"

  /// Between two looks at what is missing.
  private static let checkMilliseconds: UInt32 = 5000
  /// A daemon that restarts is back by then, so that nobody needs to be warned.
  private static let restartMilliseconds: UInt32 = 1000

  package let port: UInt16
  /// Names; empty for all.
  private let interfaces: [String]
  package let onChange: @Sendable ([Address]) -> Void
  private let onWarning: @Sendable (MusterError) -> Void

  // All that follows belongs to Avahi's thread; before that begins and once it has ended, to
  // `init` and `stop`.

  private var poll: OpaquePointer?
  private var timer: OpaquePointer?
  package var client: OpaquePointer?
  private var clientState = AVAHI_CLIENT_CONNECTING
  /// What is asked of the daemon for which interfaces, by index.
  package var usedInterfaces: [Int32] = []
  package var group: OpaquePointer?
  package var groupState = AVAHI_ENTRY_GROUP_UNCOMMITED
  /// The name that others see: neither the node's nor the machine's, and another in every process.
  package var instanceName = ServiceDiscovery.randomName()
  package var browsers: [OpaquePointer] = []
  package var hasLostBrowser = false
  package var browsedAt = Instant.zero
  package var found = FoundServices()
  package var reported: [Address] = []
  private var warned: MusterError?

  /// Begins at once. `onChange` gets the addresses of all other services whenever they change;
  /// `onWarning` what does not work, once until something else does not. Both are called on
  /// Avahi's thread.
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
    // Avahi's thread has this object until `stop`.
    let me = Unmanaged.passRetained(self).toOpaque()
    var atOnce = timeval()
    timer = api.pointee.timeout_new(api, &atOnce, { _, me in ServiceDiscovery.of(me).check() }, me)
    avahi_threaded_poll_start(poll)
  }

  /// Takes the service away and ends Avahi's thread; to be called once. Blocks as long as a call
  /// to the daemon lasts that has begun.
  package func stop() {
    guard let poll else { return }
    avahi_threaded_poll_stop(poll)
    disconnect()
    avahi_threaded_poll_get(poll).pointee.timeout_free(timer)
    avahi_threaded_poll_free(poll)
    self.poll = nil
    Unmanaged.passUnretained(self).release()
  }

  /// The object that is called back.
  package static func of(_ context: UnsafeMutableRawPointer?) -> ServiceDiscovery {
    guard let context else { preconditionFailure("Avahi calls back with what it was given") }
    return Unmanaged<ServiceDiscovery>.fromOpaque(context).takeUnretainedValue()
  }

  /// What Avahi is given to call back with.
  package var context: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }

  package static func randomName() -> String {
    let digits = String(UInt64.random(in: 0...UInt64.max), radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }

  // MARK: What is missing

  /// Has `check` called, instead of when it was due.
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

  /// Does what the daemon's state allows; returns what does not work.
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
      // The daemon looks for a name for this machine that nobody else has.
      withdraw()
      return browse()
    }
  }

  /// Without a daemon the client waits for one; without a D-Bus there is nothing to wait at.
  private func connect() {
    guard let poll else { return }
    client = avahi_client_new(
      avahi_threaded_poll_get(poll), AVAHI_CLIENT_NO_FAIL,
      { _, state, me in ServiceDiscovery.of(me).note(state) }, context, nil)
  }

  /// Frees everything; a service that was published goes from the network.
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

  /// The indices of the chosen interfaces that are there now: one that comes back has another.
  private func interfaceIndices() -> [Int32] {
    guard !interfaces.isEmpty else { return [Int32(AVAHI_IF_UNSPEC)] }
    return interfaces.map { Int32(clamping: if_nametoindex($0)) }.filter { $0 > 0 }
  }

  private func warn(_ trouble: MusterError?) {
    if let trouble, trouble != warned { onWarning(trouble) }
    warned = trouble
  }

  /// Avahi's words for one of its codes.
  package static func text(of code: Int32) -> String { String(cString: avahi_strerror(code)) }
}
