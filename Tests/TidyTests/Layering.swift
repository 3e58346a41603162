/// Who may import whom, as `docs/ARCHITECTURE.md` draws it.
enum Layering {
  /// Value types without I/O: the same code under the node, the simulator, tests and fuzzers.
  static let pure: [String: [String]] = [
    "MusterBase": [],
    "MusterWire": ["MusterBase"],
    "MusterCrypto": ["MusterBase", "CSodium"],
    "MusterLink": ["MusterBase", "MusterWire", "MusterCrypto"],
    "MusterMesh": ["MusterBase", "MusterWire", "MusterCrypto"],
    "MusterMedia": ["MusterBase", "MusterWire"],
    "MusterCore": [
      "MusterBase", "MusterWire", "MusterCrypto", "MusterLink", "MusterMesh", "MusterMedia",
    ],
    "MusterSimulator": [
      "MusterBase", "MusterWire", "MusterCrypto", "MusterLink", "MusterMesh", "MusterMedia",
      "MusterCore",
    ],
  ]

  /// Everything that touches the world, with what of the system it may touch it through.
  static let shells: [String: [String]] = [
    "MusterCodecs": [
      "MusterBase", "CVPX", "COpus", "CSpeexDSP", "CYUV", "CMusterShims", "Glibc",
      "Synchronization",
    ],
    "MusterDevices": [
      "MusterBase", "MusterCodecs", "CALSA", "CV4L2", "CMusterShims", "Glibc", "Synchronization",
    ],
    "Muster": [
      "MusterBase", "MusterWire", "MusterCrypto", "MusterLink", "MusterMesh", "MusterMedia",
      "MusterCore", "MusterCodecs", "MusterDevices", "CMusterShims", "CNATPMP", "CMiniUPnPc",
      "CAvahi", "COpenDHT", "NIOCore", "NIOPosix", "Logging", "Glibc", "Synchronization",
      "FoundationEssentials", "GRDB", "Foundation", "Dispatch",
    ],
    "MusterView": [
      "MusterBase", "MusterWire", "MusterMedia", "MusterCore", "MusterCodecs", "Muster",
      "CMusterAssets", "NIOCore", "NIOPosix", "NIOHTTP1", "NIOWebSocket", "Logging", "Glibc",
      "Synchronization", "FoundationEssentials",
    ],
    "muster": [
      "MusterBase", "MusterWire", "MusterCrypto", "MusterLink", "MusterMesh", "MusterMedia",
      "MusterCore",
      "MusterCodecs", "MusterDevices", "Muster", "MusterView", "MusterSimulator",
      "CQREncode", "ArgumentParser", "Logging", "ServiceLifecycle", "UnixSignals", "NIOCore",
      "NIOPosix", "Glibc", "Synchronization", "FoundationEssentials",
    ],
  ]

  /// Single files that may import what their target may not, each with its reason.
  static let exceptions: [String: [String]] = [
    // Rounding and logarithms are calls into the C library: `undefined reference to 'round'`.
    "Sources/MusterBase/Math.swift": ["Glibc"]
  ]

  /// Each C library has one room that sees it.
  static let rooms: [String: String] = [
    "CSodium": "MusterCrypto", "CVPX": "MusterCodecs", "COpus": "MusterCodecs",
    "CSpeexDSP": "MusterCodecs", "CYUV": "MusterCodecs", "CALSA": "MusterDevices",
    "CV4L2": "MusterDevices", "CMusterAssets": "MusterView",
    "CQREncode": "muster", "CNATPMP": "Muster", "CMiniUPnPc": "Muster", "CAvahi": "Muster",
    "COpenDHT": "Muster",
  ]
}
