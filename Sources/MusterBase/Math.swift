import Glibc

/// Functions of the C library that engines need.
public enum Math {
  /// The natural logarithm.
  public static func log(_ x: Double) -> Double { Glibc.log(x) }
}
