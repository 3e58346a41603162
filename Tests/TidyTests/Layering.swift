/// The permitted imports between targets, as drawn in `docs/ARCHITECTURE.md`.
enum Layering {
  /// The targets of value types without I/O; the node, the simulator, the tests and the fuzzers run
  /// the same code.
  static let pure: [String: [String]] = [
    "MusterBase": [],
    "MusterWire": ["MusterBase"],
    "MusterCrypto": ["MusterBase", "CSodium"],
    "MusterLink": ["MusterBase", "MusterWire", "MusterCrypto"],
    "MusterDiscovery": ["MusterBase", "MusterWire", "MusterCrypto"],
    "MusterChannel": ["MusterBase", "MusterWire", "MusterCrypto"],
    "MusterCongestion": ["MusterBase", "MusterWire"],
    "MusterMedia": ["MusterBase", "MusterWire"],
    "MusterCore": protocols,
    "MusterSimulator": protocols + ["MusterCore"],
  ]

  /// The engines that MusterCore composes, and the targets that these import.
  private static let protocols = [
    "MusterBase", "MusterWire", "MusterCrypto", "MusterLink", "MusterDiscovery", "MusterChannel",
    "MusterCongestion", "MusterMedia",
  ]

  /// The other targets, each with its permitted imports, system libraries included.
  static let shells: [String: [String]] = [
    "MusterSystem": ["MusterBase", "CMusterSystem", "Glibc", "Synchronization"],
    "MusterCodecs": [
      "MusterBase", "MusterSystem", "CVPX", "COpus", "CSpeexDSP", "CYUV", "CMusterShims",
      "Synchronization",
    ],
    "MusterDevices": [
      "MusterBase", "MusterSystem", "MusterCodecs", "CALSA", "CV4L2", "CMusterShims",
      "Synchronization",
    ],
    "MusterPipeline": [
      "MusterBase", "MusterSystem", "MusterWire", "MusterMedia", "MusterCore", "MusterCodecs",
      "MusterDevices", "Synchronization",
    ],
    "MusterStore": [
      "MusterBase", "MusterSystem", "MusterCrypto", "MusterChannel", "MusterCore", "CSQLite",
      "Dispatch", "Synchronization",
    ],
    "MusterNetwork": [
      "MusterBase", "MusterSystem", "MusterWire", "MusterCrypto", "MusterDiscovery",
      "CMusterShims", "CNATPMP", "CMiniUPnPc", "CAvahi", "COpenDHT", "NIOCore", "NIOPosix",
      "Logging", "Synchronization",
    ],
    "Muster": protocols + [
      "MusterSystem", "MusterCore", "MusterCodecs", "MusterDevices", "MusterPipeline",
      "MusterStore", "MusterNetwork", "CMusterShims", "NIOCore", "NIOPosix", "Logging",
      "Synchronization", "FoundationEssentials",
    ],
    "MusterView": [
      "MusterBase", "MusterSystem", "MusterWire", "MusterCrypto", "MusterChannel", "Muster",
      "CMusterAssets", "NIOCore", "NIOPosix", "NIOHTTP1", "NIOWebSocket", "Logging",
      "Synchronization", "FoundationEssentials",
    ],
    "MusterCommand": protocols + [
      "MusterSystem", "MusterCore", "MusterCodecs", "MusterDevices", "MusterStore",
      "MusterNetwork", "Muster", "MusterView", "CQREncode", "CMusterProcess", "ArgumentParser",
      "Logging", "NIOCore", "NIOPosix", "Dispatch", "Synchronization", "FoundationEssentials",
    ],
    "muster": ["MusterCommand"],
    "MusterLab": protocols + [
      "MusterSystem", "MusterCore", "MusterCodecs", "MusterDevices", "Muster", "MusterCommand",
      "MusterSimulator", "ArgumentParser", "Synchronization",
    ],
    "muster-lab": ["MusterLab"],
  ]

  /// The files that may import more than their target, each with the reason.
  static let exceptions: [String: [String]] = [
    // Rounding and logarithms are calls into the C library: `undefined reference to 'round'`.
    "Sources/MusterBase/Math.swift": ["Glibc"]
  ]

  /// The only target that may import each C library.
  static let rooms: [String: String] = [
    "CSodium": "MusterCrypto", "CMusterSystem": "MusterSystem", "CSQLite": "MusterStore",
    "CVPX": "MusterCodecs", "COpus": "MusterCodecs",
    "CSpeexDSP": "MusterCodecs", "CYUV": "MusterCodecs", "CALSA": "MusterDevices",
    "CV4L2": "MusterDevices", "CMusterAssets": "MusterView",
    "CQREncode": "MusterCommand", "CMusterProcess": "MusterCommand", "CNATPMP": "MusterNetwork",
    "CMiniUPnPc": "MusterNetwork",
    "CAvahi": "MusterNetwork",
    "COpenDHT": "MusterNetwork",
  ]
}
