import Glibc

/// The functions of the C library that engines need. No other file of the engines imports the C
/// library.
public enum Math {
  /// The natural logarithm.
  public static func log(_ x: Double) -> Double { Glibc.log(x) }

  /// The cube root.
  public static func cubeRoot(_ x: Double) -> Double { Glibc.cbrt(x) }
}
