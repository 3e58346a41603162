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
    "MusterCodecs": [
      "MusterBase", "CVPX", "COpus", "CSpeexDSP", "CYUV", "CMusterShims", "Glibc",
      "Synchronization",
    ],
    "MusterDevices": [
      "MusterBase", "MusterCodecs", "CALSA", "CV4L2", "CMusterShims", "Glibc", "Synchronization",
    ],
    "MusterPipeline": [
      "MusterBase", "MusterWire", "MusterMedia", "MusterCore", "MusterCodecs", "MusterDevices",
      "Glibc", "Synchronization",
    ],
    "MusterStore": [
      "MusterBase", "MusterCrypto", "MusterChannel", "MusterCore", "MusterDevices", "CSQLite",
      "Dispatch", "Glibc", "Synchronization",
    ],
    "MusterNetwork": [
      "MusterBase", "MusterWire", "MusterCrypto", "MusterDiscovery", "MusterDevices",
      "CMusterShims", "CNATPMP", "CMiniUPnPc", "CAvahi", "COpenDHT", "NIOCore", "NIOPosix",
      "Logging", "Glibc", "Synchronization",
    ],
    "Muster": protocols + [
      "MusterCore", "MusterCodecs", "MusterDevices", "MusterPipeline", "MusterStore",
      "MusterNetwork", "CMusterShims", "NIOCore", "NIOPosix", "Logging", "Glibc",
      "Synchronization", "FoundationEssentials",
    ],
    "MusterView": [
      "MusterBase", "MusterWire", "MusterCrypto", "MusterChannel", "Muster", "CMusterAssets",
      "NIOCore", "NIOPosix", "NIOHTTP1", "NIOWebSocket", "Logging", "Glibc",
      "Synchronization", "FoundationEssentials",
    ],
    "MusterCommand": protocols + [
      "MusterCore", "MusterCodecs", "MusterDevices", "MusterStore", "MusterNetwork", "Muster",
      "MusterView", "CQREncode", "CMusterProcess", "ArgumentParser", "Logging", "NIOCore",
      "NIOPosix", "Dispatch",
      "Glibc", "Synchronization", "FoundationEssentials",
    ],
    "muster": ["MusterCommand"],
    "MusterLab": protocols + [
      "MusterCore", "MusterCodecs", "MusterDevices", "Muster", "MusterCommand", "MusterSimulator",
      "ArgumentParser", "Glibc", "Synchronization",
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
    "CSodium": "MusterCrypto", "CVPX": "MusterCodecs", "COpus": "MusterCodecs",
    "CSpeexDSP": "MusterCodecs", "CYUV": "MusterCodecs", "CALSA": "MusterDevices",
    "CV4L2": "MusterDevices", "CMusterAssets": "MusterView",
    "CQREncode": "MusterCommand", "CMusterProcess": "MusterCommand", "CNATPMP": "MusterNetwork",
    "CMiniUPnPc": "MusterNetwork",
    "CAvahi": "MusterNetwork",
    "COpenDHT": "MusterNetwork",
  ]
}
