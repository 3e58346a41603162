import ArgumentParser
import Muster

/// The port after `--view`. Whatever begins with a digit or a sign is one, right or wrong, and never
/// the name of a channel to join.
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

/// What a node enters without sending.
package enum Muting: String, ExpressibleByArgument, CaseIterable {
  case audio, video, both

  package var media: [Command.Media] {
    switch self {
    case .audio: [.audio]
    case .video: [.video]
    case .both: [.audio, .video]
    }
  }
}
