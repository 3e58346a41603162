'use strict';
// Owns the WebSocket, the decoders and the canvases, so that frames are drawn in the decoder's
// callback and are not delayed by work of the page.

const HEADER_BYTES = 24;
/// The flag of a frame that is only decoded, because later frames refer to it.
const FLAG_HIDDEN = 2;
const KIND_VIDEO = 1;
/// The minimum interval between keyframe requests for one tile, in ms.
const ASK_EVERY = 500;
/// The decoder queue length above which the tile waits for the next keyframe.
const DECODE_QUEUE = 30;
/// The delay in ms, relative to the lowest recent latency of the tile, above which a frame is
/// decoded but not drawn, so that a busy machine shows fewer frames rather than old ones.
const LATE = 250;
/// The interval in ms at which a late frame is drawn nevertheless.
const DRAW_AT_LEAST = 200;
/// The window in ms of the lowest latency, which expires after one to two windows, because clocks
/// are adjusted.
const MEMORY = 5000;
/// The time in ms without a message after which the node does not respond: it sends its state once
/// a second at least.
const SILENCE = 2500;
/// The interval in ms of the counters and of the watch on the node.
const TICK = 250;

const canDecode = typeof VideoDecoder !== 'undefined';
const tiles = new Map();
let socket = null;
let url = '';
let channel = '';
// The channel chosen for display; the node's first channel is shown while this one does not exist.
let chosen = '';
let lastSnapshot = '';
/// The time in ms for which this worker has listened without a message.
let silence = 0;
let isSilent = false;
let tickedAt = performance.now();
/// The tiles that the page shows, as last stated.
let shown = [];
let retryAfter = 250;
let retryTimer = 0;

class Tile {
  constructor(number) {
    this.number = number;
    this.member = null;
    this.canvas = null;
    this.context = null;
    this.held = null;
    this.decoder = null;
    this.waiting = true;
    this.askedAt = -Infinity;
    this.pending = new Map();
    this.fastest = { since: 0, now: Infinity, before: Infinity };
    this.stats = {
      member: null, rx: 0, decoded: 0, drawn: 0, lastSeq: null, width: 0, height: 0, resets: 0,
      keyRequests: 0, skipped: 0, latencyMs: null, drawnAt: null,
    };
  }

  /// Assigns the tile to another stream: the member's id for a camera, `id/name` for other streams.
  assign(member) {
    if (this.member === member) return;
    if (this.member !== null) {
      this.restart();
      this.canvas = this.context = null;
      this.stats.lastSeq = null;
      this.stats.drawn = 0;
    }
    this.member = member;
    this.stats.member = member;
  }

  attach(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext('2d', { alpha: false });
    if (this.held) this.draw(this.held);
  }

  receive(view) {
    if (view.byteLength <= HEADER_BYTES) return;
    const isHidden = (view.getUint8(2) & FLAG_HIDDEN) !== 0;
    const sequence = view.getUint32(4, true);
    const sentAt = view.getFloat64(8, true);
    const timestamp = view.getFloat64(16, true);
    const data = new Uint8Array(view.buffer, view.byteOffset + HEADER_BYTES);
    // Taken from the frame's first bit (RFC 6386 section 9.1) rather than the header, because a
    // delta frame labelled as a keyframe would close the decoder.
    const isKey = (data[0] & 1) === 0;
    const expected = this.stats.lastSeq === null ? null : (this.stats.lastSeq + 1) >>> 0;
    this.stats.rx += 1;
    this.stats.lastSeq = sequence;
    if (isKey) this.waiting = false;
    // A decoder does not report a gap but displays damaged frames.
    else if (expected !== null && sequence !== expected) this.waiting = true;
    if (this.decoder && this.decoder.decodeQueueSize > DECODE_QUEUE) this.waiting = true;
    if (this.waiting) return this.ask();
    this.decode(isKey, isHidden ? null : sentAt, timestamp, data);
  }

  decode(isKey, sentAt, timestamp, data) {
    if (!canDecode) return;
    if (!this.decoder || this.decoder.state === 'closed') this.open();
    this.pending.set(timestamp, sentAt);
    if (this.pending.size > 128) this.pending.clear();
    try {
      this.decoder.decode(new EncodedVideoChunk({
        type: isKey ? 'key' : 'delta', timestamp, data,
      }));
    } catch (error) {
      this.restart();
      this.ask();
    }
  }

  open() {
    const decoder = new VideoDecoder({
      output: (frame) => this.decoder === decoder ? this.show(frame) : frame.close(),
      error: () => {
        if (this.decoder !== decoder) return;
        this.restart();
        this.ask();
      },
    });
    decoder.configure({ codec: 'vp8', optimizeForLatency: true });
    this.decoder = decoder;
  }

  show(frame) {
    this.stats.decoded += 1;
    this.stats.width = frame.displayWidth;
    this.stats.height = frame.displayHeight;
    const sentAt = this.pending.get(frame.timestamp);
    this.pending.delete(frame.timestamp);
    if (sentAt === null) return frame.close();
    const now = performance.timeOrigin + performance.now();
    if (sentAt !== undefined) this.stats.latencyMs = now - sentAt;
    if (!this.context) return this.hold(frame);
    if (this.isLate(now) && now - this.stats.drawnAt < DRAW_AT_LEAST) {
      this.stats.skipped += 1;
      return frame.close();
    }
    this.draw(frame);
  }

  isLate(now) {
    const { fastest, stats } = this;
    if (stats.latencyMs === null) return false;
    if (now - fastest.since > MEMORY) {
      this.fastest = { since: now, now: stats.latencyMs, before: fastest.now };
      return false;
    }
    fastest.now = Math.min(fastest.now, stats.latencyMs);
    return stats.latencyMs - Math.min(fastest.now, fastest.before) > LATE;
  }

  draw(frame) {
    const { displayWidth: width, displayHeight: height } = frame;
    const isFirst = this.stats.drawn === 0;
    const isNewSize = this.canvas.width !== width || this.canvas.height !== height;
    if (isNewSize) {
      this.canvas.width = width;
      this.canvas.height = height;
    }
    this.context.drawImage(frame, 0, 0);
    frame.close();
    this.held = null;
    this.stats.drawn += 1;
    this.stats.drawnAt = performance.timeOrigin + performance.now();
    if (isFirst || isNewSize) {
      postMessage({ kind: 'drawn', tile: this.number, member: this.member, width, height });
    }
  }

  /// Holds the newest frame until the page transfers a canvas.
  hold(frame) {
    if (this.held) this.held.close();
    this.held = frame;
  }

  /// Discards the decoder; a new one starts at the next keyframe.
  restart() {
    if (this.decoder && this.decoder.state !== 'closed') this.decoder.close();
    if (this.held) this.held.close();
    this.decoder = null;
    this.held = null;
    this.pending.clear();
    this.waiting = true;
    this.stats.resets += 1;
  }

  ask() {
    const now = performance.now();
    if (this.member === null || now - this.askedAt < ASK_EVERY) return;
    this.askedAt = now;
    this.stats.keyRequests += 1;
    const [member, stream] = this.member.split('/');
    send({ do: 'keyframe', member, stream });
  }

  close() {
    this.restart();
    tiles.delete(this.number);
  }
}

function tileOf(number) {
  let tile = tiles.get(number);
  if (!tile) tiles.set(number, tile = new Tile(number));
  return tile;
}

function send(command) {
  if (!socket || socket.readyState !== WebSocket.OPEN) return false;
  // A command of the page is for the channel that the page showed at that time.
  if (channel) command.channel ||= channel;
  socket.send(JSON.stringify(command));
  return true;
}

function connect() {
  clearTimeout(retryTimer);
  retryTimer = 0;
  const opened = new WebSocket(url);
  opened.binaryType = 'arraybuffer';
  socket = opened;
  opened.onopen = () => {
    retryAfter = 250;
    silence = 0;
    send({ do: 'show', tiles: shown });
    postMessage({ kind: 'link', state: 'up' });
  };
  opened.onmessage = (event) => {
    responded();
    if (typeof event.data === 'string') return receiveText(event.data);
    const view = new DataView(event.data);
    if (view.byteLength < HEADER_BYTES || view.getUint8(0) !== KIND_VIDEO) return;
    tileOf(view.getUint8(1)).receive(view);
  };
  opened.onclose = (event) => {
    if (socket !== opened) return;
    socket = null;
    isSilent = false;
    for (const tile of tiles.values()) {
      tile.restart();
      tile.stats.lastSeq = null;
      tile.askedAt = -Infinity;
    }
    // 1001 (going away, RFC 6455 section 7.4.1): the node has been stopped.
    postMessage({ kind: 'link', state: 'down', stopped: event.code === 1001 });
    retryTimer = setTimeout(connect, retryAfter);
    retryAfter = Math.min(retryAfter * 2, 3000);
  };
}

/// Notes that a message has come from the node.
function responded() {
  silence = 0;
  if (!isSilent) return;
  isSilent = false;
  postMessage({ kind: 'link', state: 'up' });
}

/// Notices a node that has stopped without closing the connection.
function watch(now) {
  // A tab that the browser suspended, or whose timers it delays, has not listened all the time.
  if (socket?.readyState === WebSocket.OPEN) silence += Math.min(now - tickedAt, 2 * TICK);
  tickedAt = now;
  if (isSilent || silence < SILENCE) return;
  isSilent = true;
  postMessage({ kind: 'link', state: 'silent' });
}

/// The state of all channels as `rooms`, and that of the chosen one, or else of the first, as the
/// snapshot's own.
function withRooms({ notices, others, channels, ...first }) {
  const rooms = channels.length ? [first, ...others] : [];
  const room = rooms.find((one) => one.channel === chosen) ?? first;
  return { ...room, notices, rooms };
}

function receiveText(text) {
  let message;
  try {
    message = JSON.parse(text);
  } catch {
    return;
  }
  if (message.type === 'snapshot') {
    const snapshot = withRooms(message.snapshot);
    message.snapshot = snapshot;
    lastSnapshot = text;
    channel = snapshot.channel;
    tileOf(0).assign(snapshot.self.id);
    for (const member of snapshot.members) {
      if (typeof member.tile === 'number') tileOf(member.tile).assign(member.id);
      for (const { stream, tile } of member.streams) tileOf(tile).assign(`${member.id}/${stream}`);
    }
  }
  postMessage({ kind: 'message', message });
}

onmessage = ({ data }) => {
  switch (data.kind) {
    case 'connect':
      url = data.url;
      connect();
      break;
    case 'choose':
      chosen = data.channel;
      if (lastSnapshot) receiveText(lastSnapshot);
      break;
    case 'retry':
      if (retryTimer) connect();
      break;
    case 'canvas': {
      const tile = tileOf(data.tile);
      tile.assign(data.member);
      tile.stats.drawn = 0;
      tile.attach(data.canvas);
      break;
    }
    case 'forget': {
      const tile = tiles.get(data.tile);
      if (tile && tile.member === data.member) tile.close();
      break;
    }
    case 'show':
      shown = data.tiles;
      send({ do: 'show', tiles: shown });
      break;
    case 'command':
      postMessage({ kind: 'sent', command: data.command.do, ok: send(data.command) });
      break;
  }
};

setInterval(() => {
  const all = {};
  for (const [number, tile] of tiles) all[number] = tile.stats;
  postMessage({ kind: 'stats', all, at: performance.timeOrigin + performance.now() });
  watch(performance.now());
}, TICK);

if (!canDecode) postMessage({ kind: 'no-decoder' });
