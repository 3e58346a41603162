'use strict';
// Helper functions, and the card of each member. All text from other members is set through
// textContent. Frames are drawn by worker.js only.

const $ = (id) => document.getElementById(id);
const token = new URLSearchParams(location.search).get('t') ?? '';
const worker = new Worker(`worker.js?t=${encodeURIComponent(token)}`);
const template = $('tile').content;

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
/// per second, do not clear focus and selection.
function fill(element, shown, build) {
  const key = JSON.stringify(shown);
  if (element.dataset.shown === key) return;
  element.dataset.shown = key;
  element.replaceChildren(...build());
}

function toast(text, isBad = false) {
  const element = document.createElement('div');
  element.className = isBad ? 'toast bad' : 'toast';
  element.textContent = text;
  $('toasts').append(element);
  while ($('toasts').childElementCount > 3) $('toasts').firstElementChild.remove();
  setTimeout(() => element.remove(), 6000);
}

function command(name, fields = {}) {
  worker.postMessage({ kind: 'command', command: { do: name, ...fields } });
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
    const { level, word } = quality(member);
    const box = this.part('quality');
    box.hidden = level === null;
    box.className = `quality q${level}`;
    setText(this.part('word'), word);
    const facts = factsOf(member);
    setText(this.part('facts'), facts);
    box.title = facts ? `${word}: ${facts}` : word;
  }

  remove() {
    viewport.unobserve(this.element);
    this.release();
    this.element.remove();
  }
}

/// Three levels of link quality: impairments are obvious from 5 % loss or a round trip of 400 ms,
/// and occasional from 1 % or 200 ms.
function quality({ rttMs, lossPercent }) {
  if (rttMs == null && lossPercent == null) return { level: null, word: '' };
  const loss = lossPercent ?? 0;
  const rtt = rttMs ?? 0;
  if (loss >= 5 || rtt >= 400) {
    return { level: 1, word: loss >= 5 ? 'Poor: packets lost' : 'Poor: long delay' };
  }
  if (loss >= 1 || rtt >= 200) {
    return { level: 2, word: loss >= 1 ? 'Fair: some loss' : 'Fair: some delay' };
  }
  return { level: 3, word: 'Good' };
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
