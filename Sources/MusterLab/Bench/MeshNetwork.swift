import Muster
import MusterCommand
import MusterSystem

/// A LAN on this machine: a kernel bridge, and a network namespace for each host.
struct MeshNetwork {
  private let prefix = "muster-\(getpid())"
  private let hosts: Int

  private var bridge: String { "\(prefix)-bridge" }

  /// Creates the LAN of at most 253 hosts; needs root, and `ip` from iproute2.
  init(hosts: Int) throws(MusterError) {
    self.hosts = hosts
    do {
      try Self.ip(["netns", "add", bridge])
      try Self.configure(
        bridge, ["link add br0 type bridge mcast_snooping 0", "link set br0 up"])
      for host in 0..<hosts {
        let name = namespace(of: host)
        try Self.ip(["netns", "add", name])
        try Self.configure(
          bridge,
          [
            "link add p\(host) type veth peer name eth0 netns \(name)",
            "link set p\(host) master br0 up",
          ])
        try Self.configure(
          name,
          [
            "link set lo up", "addr add 10.77.0.\(host + 1)/24 broadcast 10.77.0.255 dev eth0",
            "link set eth0 up", "route add default via 10.77.0.254 dev eth0",
          ])
      }
    } catch {
      remove()
      throw error
    }
  }

  func namespace(of host: Int) -> String { "\(prefix)-\(host)" }

  /// Removes the LAN; all processes in it must have ended.
  func remove() {
    for name in (0..<hosts).map(namespace) + [bridge] where Self.exists(name) {
      try? Self.ip(["netns", "del", name])
    }
  }

  private static func exists(_ name: String) -> Bool { access("/run/netns/\(name)", F_OK) == 0 }

  /// Runs lines of ip(8) within a namespace, all in one process.
  private static func configure(_ namespace: String, _ lines: [String]) throws(MusterError) {
    try ip(["-n", namespace, "-batch", "-"], input: lines.joined(separator: "\n") + "\n")
  }

  private static func ip(_ arguments: [String], input: String = "") throws(MusterError) {
    guard let code = ChildProcess.run("ip", arguments, input: input) else {
      throw MusterError("cannot run ip", hint: "install the package iproute2")
    }
    guard code == 0 else {
      throw MusterError(
        "ip \(arguments.joined(separator: " ")) failed",
        hint: "its own words stand above; a machine without network namespaces cannot do this")
    }
  }
}
