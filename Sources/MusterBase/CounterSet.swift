/// A set of counters, each of which a host displays under the name of its property.
///
/// The counters are listed explicitly, in addition to the properties, because statistics are
/// collected every second and reflection took 2 % of the event loop's CPU time. A test compares the
/// list with the properties.
public protocol CounterSet {
  /// Every counter with the name of its property, in declaration order.
  var counted: [(name: String, value: UInt64)] { get }
}
