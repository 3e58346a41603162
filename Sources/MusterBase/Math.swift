import Glibc

/// Functions of the C library that engines need; the only file of the engines that imports one.
public enum Math {
  /// The natural logarithm.
  public static func log(_ x: Double) -> Double { Glibc.log(x) }
}
