import ArgumentParser
import Muster

/// The port after `--view`. Whatever begins with a digit or a sign is one, right or wrong, and never
/// the name of a channel to join.
struct PagePort: ExpressibleByArgument {
  let text: String

  init(_ number: Int) { text = String(number) }

  init?(argument: String) {
    guard let first = argument.first, first.isASCII, first.isNumber || "+-".contains(first) else {
      return nil
    }
    text = argument
  }
}

/// What a node enters without sending.
enum Muting: String, ExpressibleByArgument, CaseIterable {
  case audio, video, both

  var media: [Command.Media] {
    switch self {
    case .audio: [.audio]
    case .video: [.video]
    case .both: [.audio, .video]
    }
  }
}
