import ArgumentParser
import Muster
import MusterBase
import MusterWire

/// The port after `--view`. An argument that begins with a digit or a sign counts as a port, valid
/// or not, and never as the name of a channel to join.
package struct PagePort: ExpressibleByArgument {
  package let text: String

  package init(_ number: Int) { text = String(number) }

  init(text: String) { self.text = text }

  package init?(argument: String) {
    guard let first = argument.first, first.isASCII, first.isNumber || "+-".contains(first) else {
      return nil
    }
    text = argument
  }

  package var defaultValueDescription: String { text }
}

/// The most to request of a video, given as `WxH` or `WxH@FPS`.
package struct VideoLimit {
  package let size: VideoSize
  /// The frame rate, within `VideoRequest.rates`; nil for any.
  package let framesPerSecond: Int?

  /// Parses the value of a setting, whose `phrase` begins the message if it is none.
  package init(checking text: String, as phrase: String) throws(MusterError) {
    let parts = text.split(separator: "@", omittingEmptySubsequences: false)
    let rate = parts.count == 2 ? Int(parts[1]) : nil
    guard let size = parts.first.flatMap({ VideoSize($0) }),
      parts.count == 1 || rate.map(VideoRequest.rates.contains) ?? false
    else {
      throw MusterError(
        "\(phrase) is no size",
        hint: "write WIDTHxHEIGHT, such as 640x360, or with a frame rate 640x360@15", kind: .usage)
    }
    self.size = size
    framesPerSecond = rate
  }

  /// The frame rate at which a stream of this rate is received within the limit.
  package func rate(of full: Int) -> Double {
    let most = framesPerSecond ?? full
    let decimator = TemporalLayers.decimators.last { full <= most * $0 }
    return Double(full) / Double(decimator ?? TemporalLayers.decimators[0])
  }
}
