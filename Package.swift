// swift-tools-version: 6.2
import PackageDescription

/// Settings every Swift target shares: the Swift 6 language mode with `any` spelled out.
let common: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("MemberImportVisibility"),
]

/// For the target that sees socket addresses: the C types of Glibc belong to whichever module came
/// first, NIO's or Glibc's, so that asking for their defining module's import makes no sense there.
let sockets: [SwiftSetting] = [.enableUpcomingFeature("ExistentialAny")]

/// A system library: a module map and a shim header over a Debian package.
func system(_ name: String, _ pkgConfig: String?, _ package: String) -> Target {
  .systemLibrary(name: name, pkgConfig: pkgConfig, providers: [.apt([package])])
}

/// In the gate of the tests, engines alone are optimised: they simulate many hours, while all else
/// takes the compiler half the time without (0064). A variable asks for it, because a package with
/// unsafe flags cannot be depended on.
let optimized: [SwiftSetting] =
  Context.environment["MUSTER_ENGINES"] == "optimized"
  ? [
    .unsafeFlags(
      ["-O", "-disable-batch-mode", "-whole-module-optimization", "-num-threads", "2"],
      .when(configuration: .debug))
  ] : []

/// A pure engine: no clock, no I/O, no Foundation, no NIO, no C media library. An engine that is
/// `safe` uses no unsafe construct, such as a raw pointer (SE-0458).
func engine(_ name: String, _ dependencies: [String], safe: Bool = false) -> Target {
  .target(
    name: name, dependencies: dependencies.map { .init(stringLiteral: $0) },
    swiftSettings: common + optimized + (safe ? [.strictMemorySafety()] : []))
}

/// Tests are not optimised: that would take a third of a whole build, and what takes time in them
/// is the code under test.
func tests(
  _ name: String, _ dependencies: [Target.Dependency], exclude: [String] = []
) -> Target {
  .testTarget(
    name: name, dependencies: dependencies, exclude: exclude,
    swiftSettings: common + [.unsafeFlags(["-Onone"])])
}

/// The engines that MusterCore composes, and what they stand on.
let protocols = [
  "MusterBase", "MusterWire", "MusterCrypto", "MusterLink", "MusterDiscovery", "MusterChannel",
  "MusterCongestion", "MusterMedia",
]

let package = Package(
  name: "muster",
  products: [
    .library(name: "Muster", targets: ["Muster"]),
    .library(
      name: "MusterEngines",
      targets: [
        "MusterBase", "MusterWire", "MusterCrypto", "MusterLink", "MusterDiscovery",
        "MusterChannel", "MusterCongestion", "MusterMedia", "MusterCore", "MusterSimulator",
      ]),
    .executable(name: "muster", targets: ["muster"]),
    .executable(name: "muster-lab", targets: ["muster-lab"]),
  ],
  traits: [
    .trait(
      name: "DHT",
      description: "Finding members through OpenDHT, a library under the GPL, version 3 or later.")
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
  ],
  targets: [
    system("CSodium", "libsodium", "libsodium-dev"),
    system("CVPX", "vpx", "libvpx-dev"),
    system("COpus", "opus", "libopus-dev"),
    system("CALSA", "alsa", "libasound2-dev"),
    system("CV4L2", "libv4l2", "libv4l-dev"),
    system("CSpeexDSP", "speexdsp", "libspeexdsp-dev"),
    system("CYUV", nil, "libyuv-dev"),
    system("CSQLite", "sqlite3", "libsqlite3-dev"),
    system("CQREncode", "libqrencode", "libqrencode-dev"),
    system("CNATPMP", nil, "libnatpmp-dev"),
    system("CMiniUPnPc", "miniupnpc", "libminiupnpc-dev"),
    system("CAvahi", nil, "libavahi-client-dev"),
    system("COpenDHT", "opendht-c", "libopendht-c-dev"),
    .target(
      name: "CMusterShims", dependencies: ["CVPX", "COpus", "CV4L2"],
      cSettings: [.define("_GNU_SOURCE")]),
    .target(name: "CMusterProcess", cSettings: [.define("_GNU_SOURCE")]),
    .target(name: "CMusterSystem", cSettings: [.define("_GNU_SOURCE")]),
    .target(
      name: "CMusterAssets", exclude: ["page"],
      cSettings: [.unsafeFlags(["-std=c23"])]),

    engine("MusterBase", [], safe: true),
    engine("MusterWire", ["MusterBase"]),
    engine("MusterCrypto", ["MusterBase", "CSodium"]),
    engine("MusterLink", ["MusterBase", "MusterWire", "MusterCrypto"]),
    engine("MusterDiscovery", ["MusterBase", "MusterWire", "MusterCrypto"], safe: true),
    engine("MusterChannel", ["MusterBase", "MusterWire", "MusterCrypto"], safe: true),
    engine("MusterCongestion", ["MusterBase", "MusterWire"], safe: true),
    engine("MusterMedia", ["MusterBase", "MusterWire"], safe: true),
    engine("MusterCore", protocols),
    .target(
      name: "MusterSystem", dependencies: ["MusterBase", "CMusterSystem"], swiftSettings: common),
    .target(
      name: "MusterCodecs",
      dependencies: [
        "MusterBase", "MusterSystem", "CVPX", "COpus", "CSpeexDSP", "CYUV", "CMusterShims",
      ],
      swiftSettings: common),
    .target(
      name: "MusterDevices",
      dependencies: [
        "MusterBase", "MusterSystem", "MusterCodecs", "CALSA", "CV4L2", "CMusterShims",
      ],
      swiftSettings: common),
    .target(
      name: "MusterPipeline",
      dependencies: [
        "MusterBase", "MusterSystem", "MusterWire", "MusterMedia", "MusterCore", "MusterCodecs",
        "MusterDevices",
      ], swiftSettings: common),
    .target(
      name: "MusterStore",
      dependencies: [
        "MusterBase", "MusterSystem", "MusterCrypto", "MusterChannel", "MusterCore", "CSQLite",
      ], swiftSettings: common),
    .target(
      name: "MusterNetwork",
      dependencies: [
        "MusterBase", "MusterSystem", "MusterWire", "MusterCrypto", "MusterDiscovery",
        "CMusterShims", "CNATPMP", "CMiniUPnPc", "CAvahi",
        .target(name: "COpenDHT", condition: .when(traits: ["DHT"])),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ], swiftSettings: sockets),
    .target(
      name: "Muster",
      dependencies: [
        "MusterBase", "MusterSystem", "MusterWire", "MusterCrypto", "MusterLink",
        "MusterDiscovery", "MusterChannel", "MusterMedia", "MusterCore", "MusterCodecs",
        "MusterDevices", "MusterPipeline", "MusterStore", "MusterNetwork", "CMusterShims",
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "Logging", package: "swift-log"),
      ], swiftSettings: sockets),
    .target(
      name: "MusterView",
      dependencies: [
        "MusterBase", "MusterSystem", "MusterWire", "MusterCrypto", "MusterChannel", "Muster",
        "CMusterAssets",
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "NIOWebSocket", package: "swift-nio"),
      ], swiftSettings: common),
    engine("MusterSimulator", protocols + ["MusterCore"]),
    .target(
      name: "MusterCommand",
      dependencies: [
        "MusterBase", "MusterSystem", "MusterWire", "MusterCrypto", "MusterLink",
        "MusterDiscovery", "MusterChannel", "MusterCore", "MusterCodecs", "MusterDevices",
        "MusterStore",
        "MusterNetwork", "Muster", "MusterView", "CQREncode", "CMusterProcess",
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "Logging", package: "swift-log"),
      ], swiftSettings: common),
    .executableTarget(name: "muster", dependencies: ["MusterCommand"], swiftSettings: common),
    .target(
      name: "MusterLab",
      dependencies: [
        "MusterBase", "MusterSystem", "MusterWire", "MusterCrypto", "MusterLink",
        "MusterDiscovery", "MusterChannel", "MusterCore", "MusterCodecs", "MusterDevices",
        "Muster", "MusterCommand",
        "MusterSimulator", .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ], swiftSettings: common),
    .executableTarget(name: "muster-lab", dependencies: ["MusterLab"], swiftSettings: common),

    .executableTarget(
      name: "muster-lawless", dependencies: ["Muster", "MusterChannel"], path: "Tests/Lawless",
      swiftSettings: sockets),
    .executableTarget(
      name: "muster-example", dependencies: ["Muster"], path: "docs/example",
      swiftSettings: sockets),

    tests("TidyTests", []),
    tests("MusterBaseTests", ["MusterBase"]),
    tests("MusterWireTests", ["MusterBase", "MusterWire"]),
    tests("MusterCryptoTests", ["MusterBase", "MusterCrypto"]),
    tests("MusterLinkTests", ["MusterBase", "MusterWire", "MusterCrypto", "MusterLink"]),
    tests("MusterDiscoveryTests", ["MusterBase", "MusterWire", "MusterCrypto", "MusterDiscovery"]),
    tests("MusterChannelTests", ["MusterBase", "MusterWire", "MusterCrypto", "MusterChannel"]),
    tests("MusterCongestionTests", ["MusterBase", "MusterWire", "MusterCongestion"]),
    tests("MusterMediaTests", ["MusterBase", "MusterWire", "MusterMedia"]),
    tests("MusterCodecsTests", ["MusterBase", "MusterCodecs"]),
    tests(
      "MusterCoreTests",
      [
        "MusterBase", "MusterWire", "MusterCrypto", "MusterCongestion", "MusterLink",
        "MusterChannel", "MusterMedia", "MusterCore", "MusterSimulator",
      ]),
    tests(
      "MusterPipelineTests",
      [
        "MusterBase", "MusterSystem", "MusterMedia", "MusterCore", "MusterCodecs", "MusterDevices",
        "MusterPipeline",
      ]),
    tests(
      "MusterDevicesTests", ["MusterBase", "MusterSystem", "MusterCodecs", "MusterDevices"],
      exclude: ["VirtualRoom"]),
    tests(
      "SimulationTests",
      [
        "MusterBase", "MusterWire", "MusterCrypto", "MusterChannel", "MusterDiscovery",
        "MusterSimulator",
      ]),
    tests(
      "ProtocolTests",
      [
        "MusterBase", "MusterWire", "MusterCrypto", "MusterLink", "MusterDiscovery",
        "MusterChannel", "MusterMedia",
      ]),
    tests(
      "ShellTests",
      [
        "MusterBase", "MusterSystem", "MusterWire", "MusterCrypto", "MusterChannel",
        "MusterDiscovery", "MusterMedia", "MusterCodecs", "MusterCore", "MusterDevices",
        "MusterPipeline", "MusterStore", "MusterNetwork", "Muster", "CSQLite",
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ]),
    tests(
      "MusterCommandTests",
      [
        "MusterBase", "Muster", "MusterCommand",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ]),
    tests(
      "MusterLabTests",
      [
        "MusterBase", "MusterSimulator", "Muster", "MusterLab",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ]),
    tests(
      "ViewTests",
      [
        "MusterBase", "Muster", "MusterView", .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "NIOWebSocket", package: "swift-nio"),
      ]),
  ]
)

// `make check` names the targets that it needs: with those alone, and what they import, SwiftPM
// plans, builds and links in seconds what takes minutes with all of them.
if let chosen = Context.environment["MUSTER_TARGETS"] {
  package.keep(only: chosen.split(separator: " ").map(String.init))
}

extension Package {
  /// Drops every target that the chosen ones do not need, and the packages of the dropped ones.
  func keep(only chosen: [String]) {
    var wanted = chosen
    var packages: [String] = []
    var index = 0
    while index < wanted.count {
      guard let target = targets.first(where: { $0.name == wanted[index] }) else {
        fatalError("there is no target \(wanted[index])")
      }
      for dependency in target.dependencies {
        switch dependency {
        case .targetItem(let name, _), .byNameItem(let name, _):
          if !wanted.contains(name) { wanted.append(name) }
        case .productItem(_, let package, _, _):
          if let package { packages.append(package) }
        @unknown default: break
        }
      }
      index += 1
    }
    targets.removeAll { !wanted.contains($0.name) }
    products.removeAll { !wanted.contains($0.name) }
    dependencies.removeAll { dependency in
      guard case .sourceControl(_, let url, _) = dependency.kind else { return false }
      return !packages.contains { url.hasSuffix($0) }
    }
  }
}
