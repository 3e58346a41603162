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
/// The room for a scroll bar in CSS pixels.
const SCROLL_BAR = 16;
/// The time in ms for which the layout has to stay before the node is told.
const SETTLING = 100;

let pinned = null;
let speaker = null;
const hiddenTiles = new Set();
let isCrowded = false;
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
  const gap = shown.length > 9 ? 8 : 12;
  const { clientWidth: width, clientHeight: height } = $('stage');
  const grid = $('grid').style;
  grid.setProperty('--gap', `${gap}px`);
  grid.padding = '0';
  if (front) {
    const place = placeInFront(others.length, width, height, ratio, front.ratio ?? 16 / 9, gap);
    Object.assign(front.element.style, place.front);
    grid.padding = place.padding;
    grid.maxWidth = '';
    setWidth(others, place.width, ratio);
  } else if (others.length) {
    const { columns, wide } = equalTiles(others.length, width, height, ratio, gap);
    grid.maxWidth = `${columns * (wide + gap) - gap + SCROLL_BAR}px`;
    setWidth(others, wide, ratio);
  }
  tellSoon();
}

function setWidth(tiles, width, ratio) {
  for (const { element } of tiles) {
    element.style.left = element.style.top = '';
    element.style.width = `${Math.floor(width)}px`;
    element.style.height = `${Math.floor(width / ratio)}px`;
  }
}

/// The number of columns that makes equal tiles largest, and their width; the last row is centred.
function equalTiles(count, width, height, ratio, gap) {
  let best = { wide: 0, columns: 1 };
  for (let columns = 1; columns <= count; columns += 1) {
    const rows = Math.ceil(count / columns);
    const wide = Math.floor(Math.min(
      (width - gap * (columns - 1)) / columns, (height - gap * (rows - 1)) / rows * ratio));
    if (wide > best.wide) best = { wide, columns };
  }
  const least = Math.min(LEAST_WIDTH, Math.floor((width - gap - SCROLL_BAR) / 2));
  if (best.wide >= least) return best;
  return { wide: least, columns: Math.max(Math.floor((width - SCROLL_BAR) / (least + gap)), 1) };
}

/// The place of the tile in front, and the width of the others beside it, or in a tall window below
/// it, with the padding that keeps them there.
function placeInFront(count, width, height, ratio, frontRatio, gap) {
  const pixels = (...values) => values.map((value) => `${Math.floor(value)}px`);
  if (width < height * 1.2) {
    const wide = Math.min(width, height * (count ? 0.55 : 1) * frontRatio);
    const [left, w, h] = pixels((width - wide) / 2, wide, wide / frontRatio);
    const columns = Math.max(Math.floor((width - SCROLL_BAR + gap) / (LEAST_WIDTH + gap)), 1);
    return {
      front: { left, top: '0', width: w, height: h }, padding: `calc(${h} + ${gap}px) 0 0`,
      width: Math.min((width - SCROLL_BAR - gap * (columns - 1)) / columns, MOST_BESIDE),
    };
  }
  const beside = besideFront(count, width, height, ratio, gap);
  const wide = Math.min(width - beside.room, height * frontRatio);
  const [left, top, w, h] = pixels(
    (width - beside.room - wide) / 2, (height - wide / frontRatio) / 2, wide, wide / frontRatio);
  return {
    front: { left, top, width: w, height: h },
    padding: `0 0 0 ${Math.floor(width - beside.room + gap)}px`, width: beside.width,
  };
}

/// The width of the tiles beside the one in front that leaves it the most room, and the room that
/// they take.
function besideFront(count, width, height, ratio, gap) {
  if (!count) return { width: 0, room: 0 };
  for (let columns = 1; columns * LEAST_WIDTH < width / 2; columns += 1) {
    const rows = Math.ceil(count / columns);
    const wide = Math.min((height - gap * (rows - 1)) / rows * ratio, MOST_BESIDE);
    const room = columns * (Math.floor(wide) + gap);
    if (wide >= LEAST_WIDTH && room < width / 2) return { width: wide, room };
  }
  const columns = Math.max(Math.floor(width / 3 / (LEAST_WIDTH + gap)), 1);
  return { width: LEAST_WIDTH, room: columns * (LEAST_WIDTH + gap) + SCROLL_BAR };
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
