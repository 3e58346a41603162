// swift-tools-version: 6.2
import PackageDescription

/// The fuzzers: one executable for libFuzzer, which `run` builds and starts once per target.
///
/// A package of its own, because every module below it is built with the fuzzer's instrumentation.
let package = Package(
  name: "fuzz",
  dependencies: [.package(name: "muster", path: "../..")],
  targets: [
    .executableTarget(
      name: "Fuzz", dependencies: [.product(name: "MusterEngines", package: "muster")],
      swiftSettings: [
        .enableUpcomingFeature("ExistentialAny"), .enableUpcomingFeature("MemberImportVisibility"),
      ])
  ]
)
