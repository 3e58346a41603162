#if DHT
  import COpenDHT
  import MusterBase
  import MusterSystem
  import NIOCore
  import NIOPosix

  /// A node of an OpenDHT network, which runs on the library's thread.
  ///
  /// The library calls back on that thread while holding its own lock. To avoid deadlock, no call
  /// here may block on the library while holding `state`, which callbacks take; putting and
  /// listening only enqueue.
  package final class OpenDHT: HashTable {
    private struct State {
      /// The library's node; nil once the node is stopping.
      var runner: OpaquePointer?
      /// The library's listen tokens, by key.
      var listenings: [[UInt8]: OpaquePointer] = [:]
      /// Puts that the library has not completed, kept alive for the library's callback.
      var puts: [ObjectIdentifier: Put] = [:]
      /// The number of blocking calls into the library that are under way.
      var waiting = 0
    }

    private let state: Monitor<State>

    /// The maximum size of a value in bytes; no announcement is longer.
    private static let valueLimit = 1024

    /// Starts the node on a free UDP port of all addresses, with the network id of the public
    /// OpenDHT network. Throws if the library cannot start.
    package init() throws(MusterError) {
      var configuration = dht_runner_config()
      dht_runner_config_default(&configuration)
      let runner = dht_runner_new()
      guard let runner, dht_runner_run_config(runner, 0, &configuration) == 0 else {
        if let runner { dht_runner_delete(runner) }
        throw MusterError(
          "cannot start a node of the DHT", hint: "it needs a free UDP port; leave --dht away")
      }
      state = Monitor(State(runner: runner))
    }

    deinit {
      let state = state
      WorkerThread("muster-dht") { Self.end(state) }
    }

    package func bootstrap(_ addresses: [Address]) {
      state.withLock { state in
        guard let runner = state.runner else { return }
        for address in addresses {
          dht_runner_bootstrap(runner, address.hostText, String(address.port))
        }
      }
    }

    // MARK: Putting

    /// A put that the library has not completed.
    private final class Put: Sendable {
      private let failed: @Sendable () -> Void
      // The put holds the state rather than the `OpenDHT`, which must not be deinitialised on the
      // library's thread.
      private let state: Monitor<State>

      /// Creates a put that calls `failed` if no node accepts the value.
      init(_ state: Monitor<State>, _ failed: @escaping @Sendable () -> Void) {
        self.state = state
        self.failed = failed
      }

      /// Reports the result; called once.
      func finish(_ isStored: Bool) {
        state.withLock { $0.puts[ObjectIdentifier(self)] = nil }
        if !isStored { failed() }
      }
    }

    package func put(_ value: [UInt8], under tag: [UInt8], failed: @escaping @Sendable () -> Void) {
      let put = Put(state, failed)
      state.withLock { state in
        guard let runner = state.runner else { return }
        // The put is owned by `state` rather than by the library, which drops queued puts without a
        // callback when it stops.
        state.puts[ObjectIdentifier(put)] = put
        let stored = dht_value_new(value, value.count)
        var hash = Self.hash(tag)
        dht_runner_put(
          runner, &hash, stored,
          { isStored, put in
            guard let put else { return }
            Unmanaged<Put>.fromOpaque(put).takeUnretainedValue().finish(isStored)
          }, Unmanaged.passUnretained(put).toOpaque(), false)
        dht_value_unref(stored)
      }
    }

    // MARK: Listening

    private final class Listener: Sendable {
      /// The callback for each value.
      let heard: @Sendable ([UInt8]) -> Void

      /// Creates a listener that passes values to `heard`.
      init(_ heard: @escaping @Sendable ([UInt8]) -> Void) { self.heard = heard }

      /// Passes on a value from the library, unless the value is too long.
      func receive(_ value: OpaquePointer?) {
        let view = dht_value_get_data(value)
        guard let data = view.data, view.size <= OpenDHT.valueLimit else { return }
        heard(Array(UnsafeBufferPointer(start: data, count: view.size)))
      }
    }

    package func listen(under tag: [UInt8], heard: @escaping @Sendable ([UInt8]) -> Void) {
      state.withLock { state in
        guard let runner = state.runner, state.listenings[tag] == nil else { return }
        var hash = Self.hash(tag)
        state.listenings[tag] = dht_runner_listen(
          runner, &hash,
          { value, isExpired, listener in
            guard let listener, !isExpired else { return true }
            Unmanaged<Listener>.fromOpaque(listener).takeUnretainedValue().receive(value)
            return true
          },
          // Called once, when the library has released the listener.
          { listener in
            guard let listener else { return }
            Unmanaged<Listener>.fromOpaque(listener).release()
          }, Unmanaged.passRetained(Listener(heard)).toOpaque())
      }
    }

    package func stopListening(under tag: [UInt8]) {
      state.withLock { state in
        guard let runner = state.runner, let token = state.listenings[tag] else { return }
        state.listenings[tag] = nil
        var hash = Self.hash(tag)
        dht_runner_cancel_listen(runner, &hash, token)
        dht_op_token_delete(token)
      }
    }

    private static func hash(_ tag: [UInt8]) -> dht_infohash {
      var hash = dht_infohash()
      withUnsafeMutableBytes(of: &hash) { $0.copyBytes(from: tag.prefix($0.count)) }
      return hash
    }

    // MARK: Seen addresses

    package func seenAddresses() async -> [Address] {
      let found = try? await NIOThreadPool.singleton.runIfActive { self.askSeenAddresses() }
      return found ?? []
    }

    /// Asks the library for the addresses; blocks while the library holds its lock.
    private func askSeenAddresses() -> [Address] {
      let borrowed = state.withLock { state in
        if state.runner != nil { state.waiting += 1 }
        return state.runner
      }
      guard let borrowed else { return [] }
      defer { state.withLock { $0.waiting -= 1 } }
      guard let list = dht_runner_get_public_address(borrowed) else { return [] }
      defer { free(list) }
      var found: [Address] = []
      var index = list
      while let one = index.pointee {
        if let address = Self.address(one) { found.append(address) }
        free(one)
        index += 1
      }
      return found
    }

    private static func address(_ raw: UnsafeMutablePointer<sockaddr>) -> Address? {
      switch Int32(raw.pointee.sa_family) {
      case AF_INET:
        raw.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
          Address(SocketAddress($0.pointee))
        }
      case AF_INET6:
        raw.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) {
          Address(SocketAddress($0.pointee))
        }
      default: nil
      }
    }

    // MARK: Stopping

    /// The maximum wait for the library to stop, which may block for much longer.
    private static let stopPatience = Duration.milliseconds(500)

    package func stop() async {
      _ = await WorkerThread.result("muster-dht", within: Self.stopPatience) { [state] in
        Self.end(state)
      }
    }

    /// Stops the node and waits until the library's thread has ended. Values are not withdrawn,
    /// because they expire within ten minutes.
    private static func end(_ state: Monitor<State>) {
      let runner = state.withLock { state in
        defer { state.runner = nil }
        return state.runner
      }
      guard let runner else { return }
      state.wait { $0.waiting == 0 ? () : nil }
      dht_runner_delete(runner)
      state.withLock { state in
        for token in state.listenings.values { dht_op_token_delete(token) }
        state.listenings = [:]
        state.puts = [:]
      }
    }
  }
#endif
