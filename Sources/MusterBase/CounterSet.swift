/// Counters that a host shows under their names.
///
/// A list beside the properties, because statistics are taken every second: reflection, which needs
/// none, took 2 % of an event loop's time. A test compares the two.
public protocol CounterSet {
  /// Every counter with the name of its property, in the order of their declarations.
  var counted: [(name: String, value: UInt64)] { get }
}
