import Muster
import MusterBase
import MusterDevices
import MusterNetwork
import MusterStore
import MusterSystem

/// The checks of `muster doctor`, which return findings.
enum Diagnostics {
  /// The minimum MTU of IPv6 (RFC 8200 section 5), which carries datagrams of 1,200 bytes with IPv6
  /// and UDP headers without fragmentation.
  private static let smallestMTU = 1280

  static func interfaces(_ interfaces: [NetworkInterface]) -> [Finding] {
    var findings: [Finding] = []
    for interface in interfaces {
      let tooSmall = interface.mtu < smallestMTU
      findings.append(
        Finding(
          subject: "interface \(interface.name)", verdict: tooSmall ? .bad : .good,
          fact: "\(interface.address.hostText), MTU \(interface.mtu)",
          advice: tooSmall
            ? "raise its MTU to 1280 or more: ip link set \(interface.name) mtu 1280" : ""))
    }
    if interfaces.allSatisfy(\.isLoopback) {
      findings.append(
        Finding(
          subject: "network", verdict: .note, fact: "no network but this machine's own",
          advice: "connect to a network to reach other machines; nodes on this one can talk"))
    }
    return findings
  }

  /// Checks on each interface whether two nodes without a call receive each other's announcements.
  static func multicast(_ interfaces: [NetworkInterface]) async -> [Finding] {
    let names = interfaces.map(\.name).reduce(into: [String]()) { names, name in
      if !names.contains(name) { names.append(name) }
    }
    var findings: [Finding] = []
    for name in names {
      let heard = await MulticastProbe.isHeard(on: name)
      findings.append(
        Finding(
          subject: "multicast on \(name)", verdict: heard ? .good : .note,
          fact: heard ? "announcements are heard" : "announcements are not heard",
          advice: heard
            ? "" : "allow UDP port 47474 in the firewall, or give addresses with --peer HOST:PORT"))
    }
    return findings
  }

  static func clock() -> [Finding] {
    // A time before October 2025, when this program was written, is wrong.
    let isPlausible = WallClock.milliseconds > 1_760_000_000_000
    return [
      Finding(
        subject: "clock", verdict: isPlausible ? .good : .note,
        fact: isPlausible ? "plausible" : "the wall clock is years behind",
        advice: isPlausible ? "" : "calls work all the same; times shown to others will be wrong")
    ]
  }

  /// The data directory that the settings name, and findings about the settings.
  static func settings(
    _ data: String?, _ file: SettingsFileOptions
  ) -> (data: String?, findings: [Finding]) {
    do {
      let settings = try Settings(data: data, file)
      _ = try settings.configuration()
      let source =
        settings.file.map { "read from \(Words.shown($0))" } ?? "there is no file of them"
      let good = Finding(subject: "settings", verdict: .good, fact: source)
      let warnings = settings.notices.map {
        Finding(subject: "settings", verdict: .note, fact: $0.message, advice: $0.hint)
      }
      return (settings.options.data, warnings.isEmpty ? [good] : warnings)
    } catch {
      return (
        data,
        [Finding(subject: "settings", verdict: .bad, fact: error.message, advice: error.hint)]
      )
    }
  }

  /// The rendezvous servers that earlier runs stored in the data directory, and findings about
  /// errors in reading them.
  static func rememberedRendezvous(_ given: String?) async -> ([String], [Finding]) {
    guard let path = given ?? DataDirectory.defaultPath else { return ([], []) }
    do {
      return (try await Store.rendezvous(in: path), [])
    } catch {
      return (
        [],
        [
          Finding(
            subject: "rendezvous", verdict: .note,
            fact: "those remembered cannot be read: \(error.message)", advice: error.hint)
        ]
      )
    }
  }

  static func dataDirectory(_ given: String?) -> [Finding] {
    guard let path = given ?? DataDirectory.defaultPath else {
      return [
        Finding(
          subject: "data directory", verdict: .note, fact: "neither XDG_DATA_HOME nor HOME is set",
          advice: "use --data DIR to keep this node's identity")
      ]
    }
    do {
      let isFree = try DataDirectory.open(path) != nil
      return [
        Finding(
          subject: "data directory", verdict: isFree ? .good : .note,
          fact: isFree
            ? "\(path) can be written"
            : "\(path) is in use by \(DataDirectory.holderText(of: path))",
          advice: isFree ? "" : "a second node gets a fresh identity, or use --data DIR")
      ]
    } catch {
      return [
        Finding(subject: "data directory", verdict: .bad, fact: error.message, advice: error.hint)
      ]
    }
  }

  /// Checks the requirements of DNS-SD and the DHT without sending anything.
  static func services() -> [Finding] {
    let missing = [
      (path: "/run/avahi-daemon/socket", name: "avahi-daemon"),
      (path: "/run/dbus/system_bus_socket", name: "dbus"),
    ].filter { access($0.path, F_OK) != 0 }.map(\.name)
    let hasAvahi = missing.isEmpty
    let hasDHT = DHT.isBuiltIn
    return [
      Finding(
        subject: "DNS-SD", verdict: hasAvahi ? .good : .note,
        fact: hasAvahi
          ? "avahi-daemon is there" : "\(missing.joined(separator: " and ")) not running",
        advice: hasAvahi ? "" : "start that for --dns-sd; all else works without"),
      Finding(
        subject: "DHT", verdict: hasDHT ? .good : .note,
        fact: hasDHT ? "this muster can use OpenDHT" : "this muster was built without OpenDHT",
        advice: hasDHT ? "" : "--dht needs a build with it; all else works without"),
    ]
  }

  static func devices() async -> [Finding] {
    let (cameras, soundDevices) = await WorkerThread.value("muster-devices") {
      (DeviceList.cameras(), DeviceList.soundDevices())
    }
    let hasMicrophone = await DefaultDevices.hasMicrophone()
    let hasSpeaker = await DefaultDevices.hasSpeaker()
    func hardware(_ devices: [DeviceList.SoundDevice]) -> [String] {
      devices.map(\.name).filter { $0.hasPrefix("hw:") }
    }
    func finding(_ subject: String, _ names: [String], _ group: String, _ flag: String) -> Finding {
      Finding(
        subject: subject, verdict: names.isEmpty ? .note : .good,
        fact: names.isEmpty ? "none found" : names.joined(separator: ", "),
        advice: names.isEmpty
          ? "plug one in, add yourself to the group \(group) if it is there, or use \(flag)" : "")
    }
    return [
      finding("cameras", cameras.map(\.name), "video", "--video test"),
      finding(
        "microphones", hasMicrophone ? ["default"] : hardware(soundDevices.filter(\.canCapture)),
        "audio",
        "--audio tone"),
      finding(
        "loudspeakers", hasSpeaker ? ["default"] : hardware(soundDevices.filter(\.canPlay)),
        "audio",
        "--speaker FILE.wav"),
    ]
  }
}
