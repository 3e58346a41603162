/// A set of counters that a host shows under their names.
///
/// The counters are listed explicitly, in addition to the properties, because statistics are
/// collected every second and reflection took 2 % of an event loop's time. A test compares the list
/// with the properties.
public protocol CounterSet {
  /// Every counter with the name of its property, in declaration order.
  var counted: [(name: String, value: UInt64)] { get }
}
