import Glibc

/// libFuzzer's main loop; it calls back with one input after another, and exits on a crash.
@_silgen_name("LLVMFuzzerRunDriver")
private func runDriver(
  _ count: UnsafeMutablePointer<Int32>,
  _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?>,
  _ callback: @convention(c) (UnsafePointer<UInt8>?, Int) -> Int32
) -> Int32

/// The target named by the environment; the first one by default.
private let target: FuzzTarget = {
  let name = getenv("FUZZ_TARGET").map { String(cString: $0) }
  guard let name else { return FuzzTarget.all[0] }
  guard let target = FuzzTarget.all.first(where: { $0.name == name }) else {
    fatalError("no target \(name)")
  }
  return target
}()

/// Runs one input; called by libFuzzer.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> Int32 {
  target.run([UInt8](UnsafeBufferPointer(start: bytes, count: count)))
  return 0
}

/// The entry point: SwiftPM names an executable's entry after its target, and
/// the compiler leaves it out when the fuzzer's instrumentation is on.
@_cdecl("Fuzz_main")
public func fuzzMain(
  _ count: Int32, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
) -> Int32 {
  if count == 2, let argument = arguments?[1], String(cString: argument) == "--list" {
    for target in FuzzTarget.all { puts(target.name) }
    return 0
  }
  var count = count
  var arguments = arguments
  return runDriver(&count, &arguments, fuzzOneInput)
}
