import ArgumentParser

/// The port after `--view`. Whatever begins with a digit or a sign is one, right or wrong, and
/// never the name of a channel to join.
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
