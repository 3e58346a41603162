'use strict';
// Helper functions, and the card of each member. All text from other members is set through
// textContent. Frames are drawn by worker.js only.

const $ = (id) => document.getElementById(id);
const token = new URLSearchParams(location.search).get('t') ?? '';
const worker = new Worker(`worker.js?t=${encodeURIComponent(token)}`);
const template = $('tile').content;
/// The time in ms for which a freeze counts in the quality that is shown.
const RECENT = 5000;

function hue(id) {
  let hash = 7;
  for (const letter of id) hash = (hash * 31 + letter.codePointAt(0)) >>> 0;
  // The golden angle gives similar hash values clearly different hues.
  return (hash * 137.508) % 360;
}

function initials(name) {
  const words = name.trim().split(/\s+/u).filter(Boolean);
  const letters = words.length > 1 ? [words[0], words[words.length - 1]] : words.slice(0, 1);
  return letters.map((word) => [...word][0]).join('').toLocaleUpperCase() || '?';
}

function dot(member) {
  const element = document.createElement('span');
  element.className = 'dot';
  element.textContent = initials(member.name);
  element.style.setProperty('--hue', hue(member.id));
  return element;
}

function icon(name) {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  const use = document.createElementNS('http://www.w3.org/2000/svg', 'use');
  use.setAttribute('href', `#${name}`);
  svg.append(use);
  return svg;
}

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/// Rebuilds an element's children only if the displayed data has changed, so that snapshots, ten
/// per second, do not clear the selection.
function fill(element, shown, build) {
  const key = JSON.stringify(shown);
  if (element.dataset.shown === key) return;
  element.dataset.shown = key;
  element.replaceChildren(...build());
}

/// Gives an element these children. Those that stay are not moved, which would take the focus from
/// them.
function place(element, children) {
  for (const child of [...element.children]) if (!children.includes(child)) child.remove();
  children.forEach((child, index) => {
    const there = element.children[index] ?? null;
    if (there !== child) element.insertBefore(child, there);
  });
}

function toast(text, isBad = false) {
  const element = document.createElement('div');
  element.className = isBad ? 'toast bad' : 'toast';
  element.textContent = text;
  $('toasts').append(element);
  while ($('toasts').childElementCount > 3) $('toasts').firstElementChild.remove();
  setTimeout(() => element.remove(), 6000);
}

/// Sends a command for the channel that is shown, which may not be the one chosen last.
function command(name, fields = {}) {
  const { channel } = snapshot ?? {};
  worker.postMessage({ kind: 'command', command: { do: name, channel, ...fields } });
}

// ---- Member cards -------------------------------------------------------------------------------

class Card {
  constructor(member, isOwn) {
    this.id = member.id;
    this.isOwn = isOwn;
    this.isStream = member.stream !== undefined;
    this.isInFront = false;
    this.isInView = false;
    this.rests = false;
    // The number of the member's tile, which `tile` is while a canvas is bound to it.
    this.number = null;
    this.tile = null;
    this.canvas = null;
    this.ratio = null;
    // The total time in ms for which the video has been frozen, as of the last seconds.
    this.frozen = [];
    this.element = template.firstElementChild.cloneNode(true);
    this.element.dataset.member = member.id;
    this.part = (name) => this.element.querySelector(`.${name}`);
    this.part('face').firstElementChild.style.setProperty('--hue', hue(member.id.split('/')[0]));
    if (isOwn) return this.part('acts').remove();
    this.part('pin').onclick = () => pin(this.id);
    this.part('hide').onclick = () => hide(this.id);
    viewport.observe(this.element);
  }

  update(member) {
    const name = this.isOwn ? 'You' : member.name;
    setText(this.part('name'), name);
    this.part('label').title = name;
    this.number = member.tile ?? null;
    if (!this.isOwn) {
      this.part('pin').setAttribute('aria-label', `Pin ${name}`);
      this.part('hide').setAttribute('aria-label', `Hide ${name}`);
    }
    setText(this.part('face').firstElementChild, initials(member.face ?? member.name));
    const { classList } = this.element;
    classList.toggle('audio-muted', member.audioMuted);
    classList.toggle('speaking', member.speaking && !member.audioMuted);
    this.bind(member.videoMuted ? null : member.tile ?? null);
    this.rests = Boolean(member.outranked) && !member.videoMuted;
    classList.toggle('rests', this.rests);
    const off = member.isStream ? 'paused' : 'camera off';
    const notes = [
      member.audioMuted && 'microphone off', member.videoMuted && off,
      this.rests && 'video resting',
    ];
    this.element.setAttribute('aria-label', [name, ...notes.filter(Boolean)].join(', '));
    if (!this.isOwn) this.showQuality(member);
  }

  /// Attaches a canvas to a tile of the worker, or removes the canvas.
  bind(tile) {
    if (this.tile === tile) return;
    this.release();
    if (tile === null) return;
    this.tile = tile;
    this.canvas = document.createElement('canvas');
    this.canvas.setAttribute('role', 'img');
    this.canvas.setAttribute('aria-label', this.isOwn ? 'Your picture' : 'Live picture');
    this.canvas.dataset.tile = tile;
    this.part('face').after(this.canvas);
    const canvas = this.canvas.transferControlToOffscreen();
    worker.postMessage({ kind: 'canvas', tile, member: this.id, canvas }, [canvas]);
  }

  release() {
    if (this.tile === null) return;
    worker.postMessage({ kind: 'forget', tile: this.tile, member: this.id });
    this.canvas.remove();
    this.tile = this.canvas = this.ratio = null;
    this.element.classList.remove('live');
  }

  setPlace(isInFront, isPinned) {
    this.isInFront = isInFront;
    this.element.classList.toggle('front', isInFront);
    this.part('pin').setAttribute('aria-pressed', String(isPinned));
  }

  drawn(width, height) {
    this.ratio = width / height;
    this.element.classList.add('live');
  }

  showQuality(member) {
    const frozenMs = this.recentlyFrozen(member.frozenMs ?? 0, performance.now());
    const { level, word } = quality({ ...member, frozenMs });
    const box = this.part('quality');
    box.hidden = level === null;
    box.className = `quality q${level}`;
    setText(this.part('word'), word);
    const facts = factsOf(member);
    setText(this.part('facts'), facts);
    box.title = facts ? `${word}: ${facts}` : word;
  }

  /// The time in ms for which the video was frozen in the last seconds.
  recentlyFrozen(total, now) {
    this.frozen = this.frozen.filter(({ at }) => now - at < RECENT);
    this.frozen.push({ at: now, total });
    return Math.max(total - this.frozen[0].total, 0);
  }

  remove() {
    viewport.unobserve(this.element);
    this.release();
    this.element.remove();
  }
}

/// 3 for a good value, 2 from `fair` on, and 1 from `poor` on.
function grade(value, fair, poor) {
  return value >= poor ? 1 : value >= fair ? 2 : 3;
}

/// Three levels of what is seen and heard of a member, with the reason for a lower one. Impairments
/// are obvious from 5 % loss, a round trip of 400 ms, or a second of freezes in the last few, and
/// occasional from 1 %, 200 ms, or 0.2 s. Without room for what is requested, moving video is fair.
function quality({ rttMs, lossPercent, audioLostPercent, frozenMs, why, fps }) {
  if (rttMs == null && lossPercent == null) return { level: null, word: '' };
  const findings = [
    [grade(frozenMs, 200, 1000), 'the video freezes'],
    [why === 'bandwidth' ? (fps > 0 ? 2 : 1) : 3, 'the path has no room for more'],
    [why === 'uplink-share' ? (fps > 0 ? 2 : 1) : 3, 'their uplink is shared'],
    [why === 'cpu' ? 2 : 3, 'a computer is busy'],
    [grade(audioLostPercent, 1, 5), 'sound is lost'],
    [grade(lossPercent, 1, 5), 'packets are lost'],
    [grade(rttMs, 200, 400), 'long delay'],
  ];
  const [level, reason] = findings.reduce((worst, one) => (one[0] < worst[0] ? one : worst));
  return { level, word: level === 3 ? 'Good' : `${level === 1 ? 'Poor' : 'Fair'}: ${reason}` };
}

function factsOf(member) {
  const { width, height, fps, kbps, rttMs, lossPercent, layer, why, via } = member;
  const { estimateKbps, queueMs } = member;
  const parts = [];
  const rate = fps != null ? ` at ${Math.round(fps)}` : '';
  if (width && height) parts.push(`${width}×${height}${rate}`);
  else if (layer) parts.push(layer);
  if (kbps != null) parts.push(`${Math.round(kbps)} kbit/s`);
  if (rttMs != null) parts.push(`${rttMs < 10 ? rttMs.toFixed(1) : Math.round(rttMs)} ms`);
  if (lossPercent != null) parts.push(`${lossPercent.toFixed(lossPercent < 10 ? 1 : 0)} % lost`);
  if (estimateKbps != null) parts.push(`path to them ${Math.round(estimateKbps)} kbit/s`);
  if (queueMs != null && queueMs >= 10) parts.push(`${Math.round(queueMs)} ms queued`);
  if (why) parts.push(why.replaceAll("-", " "));
  if (via) parts.push(`relayed by ${via}`);
  return parts.join(' · ');
}
