'use strict';
// Arranges the tiles of the stage, and tells the node which of them can be seen and how large they
// are, so that no more video is requested than they can use.

/// The factor from a tile's size to the size requested. The sender picks the largest layer within
/// the request, which is then enlarged by a third at most.
const REQUESTED = 1.5;
/// The multiple in pixels to which requests are rounded up, so that few changes of the layout
/// change them.
const REQUEST_STEP = 20;
/// With more tiles than these, one is in front, and the others get at most this frame rate.
const EQUAL_TILES = 4;
const SMALL_RATE = 15;
/// The least width of a tile, and the most beside the one in front, in CSS pixels. In a very small
/// window the stage scrolls, because smaller tiles would be unrecognisable.
const LEAST_WIDTH = 132;
const MOST_BESIDE = 240;
/// The time in ms for which the layout has to stay before the node is told.
const SETTLING = 100;

let pinned = null;
let speaker = null;
const hiddenTiles = new Set();
let isCrowded = false;
/// The width of a scroll bar in CSS pixels, which is 0 where bars lie above the content.
let barWidth = 0;
let toldTiles = '';
let tellTimer = 0;

// ---- What is in front ---------------------------------------------------------------------------

/// Notes the dominant speaker; while this node's user is it, the one before.
function noteSpeaker(self, call) {
  if (call?.speaker && call.speaker !== self.id) speaker = call.speaker;
}

/// The card in front: the pinned one, else a screen, and among many the speaker, or else one whose
/// video does not rest.
function frontCard(shown) {
  const find = (id) => shown.find((card) => card.id === id);
  const screen = shown.find((card) => card.isStream);
  if (find(pinned) || screen) return find(pinned) ?? screen;
  if (shown.length <= EQUAL_TILES) return null;
  return find(speaker) ?? shown.find((card) => !card.rests) ?? shown[0];
}

function pin(id) {
  pinned = pinned === id ? null : id;
  arrange();
}

function hide(id) {
  hiddenTiles.add(id);
  arrange();
}

$('unhide').onclick = () => {
  hiddenTiles.clear();
  arrange();
};

// ---- Layout -------------------------------------------------------------------------------------

function stageResized() {
  // The page may have been zoomed, which changes the width of a bar in CSS pixels.
  const probe = document.createElement('div');
  probe.className = 'probe';
  probe.append(document.createElement('div'));
  document.body.append(probe);
  barWidth = Math.ceil(probe.offsetWidth - probe.firstChild.getBoundingClientRect().width);
  probe.remove();
  arrange();
}

/// Arranges the tiles. Whether they scroll is a part of the layout: a browser keeps the scroll bar
/// that the tiles of the layout before needed, and a column of the new one would not fit beside it.
function arrange() {
  const all = [...cards.values()].filter((card) => !card.isOwn);
  for (const card of all) card.element.hidden = hiddenTiles.has(card.id);
  const shown = all.filter((card) => !card.element.hidden);
  $('unhide').hidden = shown.length === all.length;
  setText($('unhide'), `${all.length - shown.length} hidden`);
  const front = frontCard(shown);
  isCrowded = shown.length > EQUAL_TILES;
  for (const card of all) card.setPlace(card === front, card.id === pinned);
  const others = shown.filter((card) => card !== front);
  const ratios = others.map((card) => card.ratio).filter(Boolean);
  const isUniform = ratios.length && Math.max(...ratios) / Math.min(...ratios) < 1.02;
  const ratio = isUniform ? Math.min(Math.max(ratios[0], 0.6), 2.2) : 16 / 9;
  const { width, height } = $('stage').getBoundingClientRect();
  const room = {
    width: Math.floor(width), height: Math.floor(height), gap: shown.length > 9 ? 8 : 12,
  };
  const layout = front
    ? placeInFront(others.length, room, ratio, front.ratio ?? 16 / 9)
    : { ...equalTiles(others.length, room, ratio), left: 0, top: 0 };
  if (front) Object.assign(front.element.style, layout.front);
  placeGrid(layout, room);
  setWidth(others, layout.wide, ratio);
  tellSoon();
}

/// Limits the grid to the columns of the layout, in the middle of the room that they are given.
function placeGrid({ left, top, columns, wide, scrolls }, { width, height, gap }) {
  const grid = $('grid');
  grid.classList.toggle('scrolls', scrolls);
  const across = columns * (wide + gap) - gap;
  const side = scrolls ? 0 : Math.max(Math.floor((width - left - across) / 2), 0);
  grid.style.setProperty('--gap', `${gap}px`);
  grid.style.margin = `${top}px ${side}px 0 ${left + side}px`;
  grid.style.height = `${Math.max(height - top, 0)}px`;
}

function setWidth(tiles, width, ratio) {
  for (const { element } of tiles) {
    element.style.left = element.style.top = '';
    element.style.width = `${width}px`;
    element.style.height = `${Math.floor(width / ratio)}px`;
  }
}

/// The number of columns that makes equal tiles largest, and their width; the last row is centred.
/// Tiles that would be too small scroll, beside a bar.
function equalTiles(count, { width, height, gap }, ratio, most = Infinity) {
  let best = { wide: 0, columns: 1 };
  for (let columns = 1; columns <= count; columns += 1) {
    const rows = Math.ceil(count / columns);
    const wide = Math.floor(Math.min(
      (width - gap * (columns - 1)) / columns, (height - gap * (rows - 1)) / rows * ratio, most));
    if (wide > best.wide) best = { wide, columns };
  }
  const least = Math.min(LEAST_WIDTH, Math.floor((width - gap - barWidth) / 2));
  if (!count || best.wide >= least) return { ...best, scrolls: false };
  const columns = Math.max(Math.floor((width - barWidth + gap) / (least + gap)), 1);
  const wide = Math.floor((width - barWidth - gap * (columns - 1)) / columns);
  return { wide: Math.min(wide, most), columns, scrolls: true };
}

/// The place of the tile in front, and the layout of the others beside it, or in a tall or a very
/// small window below it.
function placeInFront(count, room, ratio, frontRatio) {
  const { width, height, gap } = room;
  const inPixels = (values) => values.map((value) => `${Math.floor(value)}px`);
  if (width < height * 1.2 || width < 3 * LEAST_WIDTH) {
    const wide = Math.min(width, height * (count ? 0.55 : 1) * frontRatio);
    const [left, w, h] = inPixels([(width - wide) / 2, wide, wide / frontRatio]);
    const top = Math.floor(wide / frontRatio) + gap;
    return {
      ...equalTiles(count, { ...room, height: height - top }, ratio, MOST_BESIDE), left: 0, top,
      front: { left, top: '0', width: w, height: h },
    };
  }
  const beside = besideFront(count, room, ratio);
  const wide = Math.min(width - beside.taken, height * frontRatio);
  const tall = wide / frontRatio;
  const [left, top, w, h] = inPixels(
    [(width - beside.taken - wide) / 2, (height - tall) / 2, wide, tall]);
  return {
    ...beside, left: width - beside.taken + gap, top: 0,
    front: { left, top, width: w, height: h },
  };
}

/// The layout of the tiles beside the one in front that leaves it the most room, and the width that
/// they take.
function besideFront(count, { width, height, gap }, ratio) {
  if (!count) return { wide: 0, columns: 1, taken: 0, scrolls: false };
  for (let columns = 1; columns * LEAST_WIDTH < width / 2; columns += 1) {
    const rows = Math.ceil(count / columns);
    const wide = Math.floor(Math.min(
      (height - gap * (rows - 1)) / rows * ratio, width / 2 / columns - gap, MOST_BESIDE));
    const taken = columns * (wide + gap);
    if (wide >= LEAST_WIDTH) return { wide, columns, taken, scrolls: false };
  }
  const columns = Math.max(Math.floor(width / 3 / (LEAST_WIDTH + gap)), 1);
  const taken = columns * (LEAST_WIDTH + gap) + barWidth;
  return { wide: LEAST_WIDTH, columns, taken, scrolls: true };
}

// ---- What the node is told ----------------------------------------------------------------------

/// Notes which tiles are scrolled into view.
const viewport = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    const card = cards.get(target.dataset.member);
    if (card?.element === target) card.isInView = isIntersecting;
  }
  tellSoon();
}, { root: $('grid') });

/// The tiles that can be seen, each with the size and the frame rate that are of use to it.
function tilesInView() {
  if (document.hidden || !snapshot?.self.inCall) return [];
  const shown = [...cards.values()].filter((card) => card.number !== null && !card.element.hidden
    && (card.isOwn || card.isInFront || card.isInView));
  return shown.map((card) => {
    const { offsetWidth, offsetHeight } = card.element;
    const [width, height] = [offsetWidth, offsetHeight].map((side) => REQUEST_STEP
      * Math.ceil(side * devicePixelRatio * REQUESTED / REQUEST_STEP));
    const isSmall = isCrowded && !card.isInFront && !card.isOwn;
    return {
      tile: card.number, width, height, ...(isSmall && { fps: SMALL_RATE }),
      ...(card.id === pinned && { pin: true }),
    };
  }).filter(({ width, height }) => width > 0 && height > 0);
}

function tell() {
  clearTimeout(tellTimer);
  tellTimer = 0;
  const tiles = tilesInView();
  const text = JSON.stringify(tiles);
  if (text === toldTiles) return;
  toldTiles = text;
  worker.postMessage({ kind: 'show', tiles });
}

function tellSoon() {
  tellTimer ||= setTimeout(tell, SETTLING);
}
