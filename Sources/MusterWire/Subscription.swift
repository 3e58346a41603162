import MusterBase

/// A receiver's request for one video stream.
///
/// Layout in bytes: stream 1, width 2, height 2, frames per second 1, reason 1. The last two are
/// left out of a request at any frame rate for the reason `requested`.
public struct Subscription: Equatable, Sendable {
  /// The requested stream, which the receiver of this message sends.
  public var stream: StreamID
  /// How much of the stream is useful to the sender of this message.
  public var request: VideoRequest

  /// Describes a subscription to a stream of the node that receives this message.
  public init(_ stream: StreamID, _ request: VideoRequest) {
    self.stream = stream
    self.request = request
  }

  func write(to writer: inout Writer) {
    writer.u8(stream.number)
    request.write(to: &writer)
  }

  /// Decodes a subscription; nil for a stream number that this version does not support.
  static func read(from reader: inout Reader) throws(WireError) -> Subscription? {
    let stream = StreamID(Int(try reader.u8()))
    let request = try VideoRequest(reading: &reader)
    return stream.map { Subscription($0, request) }
  }
}

/// The most of a video stream that is useful to its receiver.
public struct VideoRequest: Equatable, Sendable {
  /// The width in pixels; 0 requests no video.
  public var width: UInt16
  /// The height in pixels; 0 requests no video.
  public var height: UInt16
  /// The frame rate; `anyRate` for no limit.
  public var framesPerSecond: UInt8
  /// The reason for the request: `requested`, `rank` for no video, or `cpu`.
  public var why: LayerReason

  /// The frame rate that stands for no limit.
  public static let anyRate = UInt8.max
  /// The frame rates that are limits.
  public static let rates = 1...Int(anyRate) - 1

  /// Requests no more than this size in pixels and frame rate; 0 for any of them requests no video.
  public init(
    width: UInt16, height: UInt16, framesPerSecond: UInt8 = anyRate, why: LayerReason = .requested
  ) {
    self.width = width
    self.height = height
    self.framesPerSecond = framesPerSecond
    self.why = why
  }

  /// Requests the largest layer, whatever its size, at its full frame rate.
  public static let best = VideoRequest(width: .max, height: .max)
  /// Requests no video.
  public static let none = VideoRequest(width: 0, height: 0)
  /// Requests no video, because the videos of others rank higher.
  public static let outranked = VideoRequest(width: 0, height: 0, why: .rank)

  /// Requests no video, because this node is short of CPU.
  public static let shortOfCPU = VideoRequest(width: 0, height: 0, why: .cpu)

  /// Whether any video is requested.
  public var wantsVideo: Bool { width > 0 && height > 0 && framesPerSecond > 0 }

  /// The request that asks for no more than both.
  public func limited(to other: VideoRequest) -> VideoRequest {
    VideoRequest(
      width: min(width, other.width), height: min(height, other.height),
      framesPerSecond: min(framesPerSecond, other.framesPerSecond), why: why)
  }

  /// The request that a node short of CPU makes instead, for no more than `limit`.
  public func adapted(to limit: VideoRequest) -> VideoRequest {
    let less = limited(to: limit)
    guard wantsVideo, less != self else { return self }
    guard less.wantsVideo else { return .shortOfCPU }
    return VideoRequest(
      width: less.width, height: less.height, framesPerSecond: less.framesPerSecond, why: .cpu)
  }

  /// The request that asks for as much as either.
  public func combined(with other: VideoRequest) -> VideoRequest {
    guard wantsVideo else { return other }
    guard other.wantsVideo else { return self }
    return VideoRequest(
      width: max(width, other.width), height: max(height, other.height),
      framesPerSecond: max(framesPerSecond, other.framesPerSecond), why: why)
  }

  func write(to writer: inout Writer) {
    writer.u16(width)
    writer.u16(height)
    guard framesPerSecond != Self.anyRate || why != .requested else { return }
    writer.u8(framesPerSecond)
    writer.u8(why.rawValue)
  }

  init(reading reader: inout Reader) throws(WireError) {
    width = try reader.u16()
    height = try reader.u16()
    framesPerSecond = Self.anyRate
    why = .requested
    guard !reader.isAtEnd else { return }
    framesPerSecond = try reader.u8()
    let reason = LayerReason(rawValue: try reader.u8())
    why = reason == .rank || reason == .cpu ? reason ?? .requested : .requested
  }
}
