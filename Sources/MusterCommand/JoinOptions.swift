import ArgumentParser

/// The port after `--view`. An argument that begins with a digit or a sign counts as a port, valid
/// or not, and never as the name of a channel to join.
package struct PagePort: ExpressibleByArgument {
  package let text: String

  package init(_ number: Int) { text = String(number) }

  package init?(argument: String) {
    guard let first = argument.first, first.isASCII, first.isNumber || "+-".contains(first) else {
      return nil
    }
    text = argument
  }
}
