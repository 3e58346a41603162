import MusterBase
import MusterSystem

/// The drop policy of an element in a `FrameQueue`.
package enum QueuedMedia<Key: Equatable & Sendable>: Equatable, Sendable {
  /// An element that is never dropped, such as the end of a member's media.
  case control(Key)
  /// An element that decodes independently, such as PCM or an Opus packet; the oldest is dropped
  /// first.
  case independent(Key)
  /// A VP8 frame of one stream and spatial layer, referenced only by frames of the same or a higher
  /// `temporalLayer`.
  case encoded(Key, temporalLayer: Int, isKeyframe: Bool)

  var key: Key {
    switch self {
    case .control(let key), .independent(let key), .encoded(let key, _, _): key
    }
  }

  var isIndependent: Bool {
    if case .independent = self { true } else { false }
  }

  var isControl: Bool {
    if case .control = self { true } else { false }
  }
}

/// The fill level of a queue: elements waiting, and elements dropped since the start.
package struct QueueLevel: Equatable, Sendable {
  package var waiting: Int
  package var dropped: UInt64

  package init(waiting: Int, dropped: UInt64) {
    self.waiting = waiting
    self.dropped = dropped
  }
}

/// A bounded queue between threads that never blocks the producer and delivers only decodable
/// frames.
///
/// A full queue drops encoded frames of the highest temporal layer first and, within that layer,
/// the oldest first, together with the frames that refer to them. If only base layers are left, the
/// stream with the oldest frame is dropped up to its next keyframe; `add` reports this stream, so
/// that the producer can request a keyframe. Consecutive control elements of one key are merged,
/// which bounds their number by that of media elements and keys. The queue keeps the order of
/// elements.
package final class FrameQueue<Element: Sendable, Key: Equatable & Sendable>: Sendable {
  package typealias Media = QueuedMedia<Key>

  /// The result of adding an element.
  package enum Admission: Equatable, Sendable {
    case queued
    /// The new element or an older one was dropped.
    case dropped
    /// This stream and layer cannot be decoded before its next keyframe, which should be requested.
    case needsKeyframe(Key)
  }

  private struct Entry {
    var element: Element
    var media: Media
  }

  /// A stream and spatial layer in which new frames may refer to dropped frames.
  private struct Gap {
    let key: Key
    var frames = ReferenceGap()
  }

  private struct Contents {
    var entries: [Entry] = []
    var encoded = 0
    var independent = 0
    var gaps: [Gap] = []
    var dropped: UInt64 = 0
    var isClosed = false
  }

  private let encodedLimit: Int
  private let independentLimit: Int
  private let classify: @Sendable (Element) -> Media
  private let contents = Monitor(Contents())

  /// A queue of at most `encoded` VP8 frames and `independent` other media elements.
  package init(
    encoded: Int, independent: Int, classify: @escaping @Sendable (Element) -> Media
  ) {
    precondition(encoded > 0 && independent > 0)
    encodedLimit = encoded
    independentLimit = independent
    self.classify = classify
  }

  /// Appends an element without blocking; drops it if the queue is closed.
  @discardableResult
  package func add(_ element: Element) -> Admission {
    let media = classify(element)
    return contents.withLock { contents in
      guard !contents.isClosed else { return .dropped }
      let entry = Entry(element: element, media: media)
      switch media {
      case .control(let key):
        let last = contents.entries.last { $0.media.key == key }
        if last?.media.isControl != true { contents.entries.append(entry) }
        return .queued
      case .independent:
        contents.entries.append(entry)
        contents.independent += 1
        guard contents.independent > independentLimit else { return .queued }
        return Self.dropOldestIndependent(&contents)
      case .encoded(let key, let temporalLayer, let isKeyframe):
        guard Self.isDecodable(key, temporalLayer, isKeyframe, &contents) else {
          contents.dropped += 1
          return .dropped
        }
        contents.entries.append(entry)
        contents.encoded += 1
        return contents.encoded > encodedLimit ? Self.makeRoom(&contents) : .queued
      }
    }
  }

  /// Takes all queued elements; blocks while the queue is empty, and returns nil once it is closed
  /// and empty.
  package func takeAll() -> [Element]? {
    contents.wait { contents -> [Element]?? in
      if contents.entries.isEmpty { return contents.isClosed ? .some(nil) : nil }
      return .some(Self.take(&contents))
    }
  }

  /// Takes the oldest element; blocks while the queue is empty, and returns nil once it is closed,
  /// whatever it holds.
  package func take() -> Element? {
    contents.wait { contents -> Element?? in
      if contents.isClosed { return .some(nil) }
      guard !contents.entries.isEmpty else { return nil }
      let entry = contents.entries.removeFirst()
      switch entry.media {
      case .control: break
      case .independent: contents.independent -= 1
      case .encoded: contents.encoded -= 1
      }
      return .some(entry.element)
    }
  }

  /// Takes all queued elements without blocking.
  package func takeWithoutWaiting() -> [Element] { contents.withLock { Self.take(&$0) } }

  package var isClosed: Bool { contents.withLock { $0.isClosed } }

  package var level: QueueLevel {
    contents.withLock { QueueLevel(waiting: $0.entries.count, dropped: $0.dropped) }
  }

  /// Closes the queue to new elements; queued ones can still be taken.
  package func close() { contents.withLock { $0.isClosed = true } }

  // MARK: Operations under the lock

  private static func take(_ contents: inout Contents) -> [Element] {
    defer {
      contents.entries = []
      contents.encoded = 0
      contents.independent = 0
    }
    return contents.entries.map(\.element)
  }

  private static func dropOldestIndependent(_ contents: inout Contents) -> Admission {
    guard let oldest = contents.entries.firstIndex(where: { $0.media.isIndependent }) else {
      return .queued
    }
    contents.entries.remove(at: oldest)
    contents.independent -= 1
    contents.dropped += 1
    return .dropped
  }

  /// Whether all frames that a new frame refers to were queued. A frame that closes the gap of its
  /// stream also removes the gap.
  private static func isDecodable(
    _ key: Key, _ temporalLayer: Int, _ isKeyframe: Bool, _ contents: inout Contents
  ) -> Bool {
    guard let index = contents.gaps.firstIndex(where: { $0.key == key }) else { return true }
    guard contents.gaps[index].frames.admits(temporalLayer: temporalLayer, isKeyframe: isKeyframe)
    else { return false }
    contents.gaps[index].frames.kept(temporalLayer: temporalLayer)
    if contents.gaps[index].frames.isClosed { contents.gaps.remove(at: index) }
    return true
  }

  private static func makeRoom(_ contents: inout Contents) -> Admission {
    var highest: (index: Int, key: Key, layer: Int)?
    for (index, entry) in contents.entries.enumerated() {
      guard case .encoded(let key, let layer, let isKeyframe) = entry.media, !isKeyframe,
        layer > highest?.layer ?? 0
      else { continue }
      highest = (index, key, layer)
    }
    if let highest {
      dropDependents(from: highest.index, of: highest.key, layer: highest.layer, &contents)
      return .dropped
    }
    return dropToKeyframe(&contents)
  }

  /// Drops a frame above the base layer and the later frames of its stream at the same or a higher
  /// layer, up to the next base-layer frame.
  private static func dropDependents(
    from index: Int, of key: Key, layer: Int, _ contents: inout Contents
  ) {
    var isHealed = false
    remove(from: index, &contents) { entry in
      guard case .encoded(key, let other, _) = entry.media, !isHealed else { return false }
      if other == 0 { isHealed = true }
      return other >= layer
    }
    if !isHealed { note(key, temporalLayer: layer, &contents) }
  }

  /// Drops the frames of the stream with the oldest queued frame, up to its next keyframe.
  private static func dropToKeyframe(_ contents: inout Contents) -> Admission {
    var first: (index: Int, key: Key)?
    for (index, entry) in contents.entries.enumerated() {
      guard case .encoded(let key, _, _) = entry.media else { continue }
      first = (index, key)
      break
    }
    guard let first else { return .queued }
    var isHealed = false
    var isFirst = true
    remove(from: first.index, &contents) { entry in
      guard case .encoded(first.key, _, let isKeyframe) = entry.media, !isHealed else {
        return false
      }
      if isKeyframe, !isFirst { isHealed = true }
      isFirst = false
      return !isHealed
    }
    guard !isHealed else { return .dropped }
    note(first.key, temporalLayer: 0, &contents)
    return .needsKeyframe(first.key)
  }

  private static func remove(
    from index: Int, _ contents: inout Contents, where isDropped: (Entry) -> Bool
  ) {
    let kept = contents.entries[index...].filter { !isDropped($0) }
    let count = contents.entries.count - index - kept.count
    contents.entries.replaceSubrange(index..., with: kept)
    contents.encoded -= count
    contents.dropped += UInt64(count)
  }

  private static func note(_ key: Key, temporalLayer: Int, _ contents: inout Contents) {
    let known = contents.gaps.firstIndex { $0.key == key }
    let index = known ?? contents.gaps.count
    if known == nil { contents.gaps.append(Gap(key: key)) }
    contents.gaps[index].frames.leftOut(temporalLayer: temporalLayer)
  }
}
