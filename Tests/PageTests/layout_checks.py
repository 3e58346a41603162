"""The layout of the page, by the places of its parts, beside ordinary scroll bars."""

import json

from fake_node import member, message, room, snapshot

# A desktop, half of it, a window beside others, a phone, and a desktop at 400 %.
SIZES = [(1280, 720), (900, 900), (700, 600), (390, 844), (320, 568), (320, 256)]
MOST = 17
# Equal to `LEAST_WIDTH` of the page.
LEAST_WIDTH = 132

# The first thing that is wrong with the tiles that are shown; null if there is none.
FAULT = """
(count) => {
  const box = (element) => element.getBoundingClientRect();
  const grid = document.querySelector('#grid');
  const stage = box(document.querySelector('#stage'));
  const inner = { left: box(grid).left, right: box(grid).left + grid.clientWidth };
  const tiles = [...document.querySelectorAll('#grid .tile')];
  const boxes = tiles.map(box);
  // Two beside each other in a window that is too small for more.
  const least = Math.min(
    LEAST_WIDTH, Math.floor((stage.width - 12 - grid.offsetWidth + grid.clientWidth) / 2));
  const scrolls = grid.scrollHeight > grid.clientHeight;
  if (tiles.length !== count) return `${tiles.length} tiles`;
  if (document.documentElement.scrollWidth > innerWidth) return 'the page is too wide';
  if (grid.scrollWidth > grid.clientWidth) return 'the grid is too wide';
  if (scrolls && getComputedStyle(grid).overflowY === 'hidden') return 'tiles are cut off';
  for (const [index, one] of boxes.entries()) {
    const isFront = tiles[index].classList.contains('front');
    const [left, right] = isFront ? [stage.left, stage.right] : [inner.left, inner.right];
    if (one.width < least || one.height < least / 2.2) return `${one.width} x ${one.height}`;
    if (one.left < left - 1 || one.right > right + 1) return `from ${one.left} to ${one.right}`;
    if (one.top < stage.top - 1) return 'above the stage';
    if ((isFront || !scrolls) && one.bottom > stage.bottom + 1) return 'below the stage';
    const top = isFront ? -Infinity : box(grid).top;
    for (const [other, two] of boxes.entries()) {
      const overlap = one.left < two.right - 1 && two.left < one.right - 1
        && one.top < two.bottom - 1 && two.top < one.bottom - 1;
      if (other < index && overlap) return `${other} and ${index} overlap`;
      if (tiles[other].classList.contains('front') && other !== index && top < two.bottom
        && box(grid).left < two.right) return 'scrolled tiles would cover the one in front';
    }
  }
  const small = boxes.filter((_, index) => !tiles[index].classList.contains('front'));
  if (!small.length) return null;
  const gap = parseFloat(getComputedStyle(grid).columnGap);
  const columns = small.filter((one) => Math.abs(one.top - small[0].top) < 1).length;
  const fitting = Math.floor((grid.clientWidth + gap) / (small[0].width + gap));
  if (columns < Math.min(fitting, small.length)) return `${columns} of ${fitting} columns`;
  const most = Math.floor((grid.clientWidth + gap) / (least + gap));
  if (scrolls && tiles.length === small.length && fitting < most) {
    return 'the tiles scroll, although more would fit beside each other';
  }
  return null;
}
""".replace("LEAST_WIDTH", str(LEAST_WIDTH))

# Applies states with ever more others, each with the chat open and closed in turn. In a narrow
# window, the chat covers the tiles, and does not change their layout.
TABLE = """
(async () => {
  const fault = %s;
  const settled = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  const all = snapshot;
  const faults = [];
  const sizes = { true: [], false: [] };
  for (let count = 1; count <= %d; count += 1) {
    show({ ...all, members: all.members.slice(0, count) });
    for (const isOpen of [true, false]) {
      openChat(isOpen);
      await settled();
      const found = fault(count);
      if (found) faults.push(`${innerWidth}x${innerHeight}, ${count}, ${isOpen}: ${found}`);
      const tile = document.querySelector('#grid .tile:not(.front)') ?? { offsetWidth: 0 };
      sizes[isOpen].push(tile.offsetWidth);
    }
  }
  show(all);
  return { faults, sizes };
})()
"""

# The parts of these selectors that cannot be clicked: cut off, or covered by others.
UNREACHABLE = """
((selectors) => selectors.filter((selector) => {
  const all = [...document.querySelectorAll(selector)];
  return all.length === 0 || all.some((element) => {
    const { left, right, top, bottom } = element.getBoundingClientRect();
    const there = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
    return left < 0 || right > innerWidth || top < 0 || bottom > innerHeight
      || !element.contains(there);
  });
}))(%s)
"""

# The channels that cannot be scrolled to and clicked.
LOST_CHANNELS = """
[...document.querySelectorAll('#channels button')].filter((tab) => {
  tab.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  const { left, right, top, bottom } = tab.getBoundingClientRect();
  const there = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
  return left < 0 || right > innerWidth || !tab.contains(there);
}).map((tab) => tab.title)
"""

HEADER = ["#details", "#talk", "#people > summary"]
CONTROLS = [*HEADER, "#mic", "#cam", "#share", "#leave", "#me .tile"]
CHAT = [*HEADER, "#to", "#text", "#send"]
LONG = "the crew that repairs the long cable across the northern bay"


def check_tiles(browser, node):
    """Up to 17 tiles fit into windows of all sizes, beside the chat and without it."""
    node.show(snapshot(room("kitchen", [member(i + 1) for i in range(MOST)])))
    browser.wait(f"document.querySelectorAll('#grid .tile').length === {MOST}", "the tiles")
    node.rest()
    table = []
    for width, height in SIZES:
        browser.resize(width, height)
        browser.wait(f"innerWidth === {width}", "the new size")
        found = browser.run(TABLE % (FAULT, MOST))
        assert not found["faults"], json.dumps(found["faults"], indent=1)
        for is_open, beside in (("false", ""), ("true", ", beside the chat")):
            sizes = " ".join(map(str, found["sizes"][is_open]))
            table.append(f"{width}x{height}{beside}: {sizes}")
    return "\n      ".join(["the width of 1 to 17 tiles:", *table])


def check_resized(browser, node):
    """No column is lost when the window changes its size."""
    for count in (2, 3, 4):
        node.show(snapshot(room("kitchen", [member(i + 1) for i in range(count)])))
        browser.wait(f"document.querySelectorAll('#grid .tile').length === {count}", "the tiles")
        for width, height in [(1280, 720), (900, 900), (1000, 700), (700, 900), (1280, 720)]:
            browser.resize(width, height)
            fault = f"(() => {{ const fault = {FAULT}; return fault({count}); }})()"
            # The page learns of its new size with the next frame that it draws.
            browser.run("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 20)))")
            found = browser.run(fault)
            assert found is None, f"{count} others at {width}x{height}: {found}"


def check_narrow(browser, node):
    """Nothing is cut off, with one channel and many, short and long names."""
    people = [member(i + 1) for i in range(3)]
    texts = [message(1, "A message")]
    for names in (["kitchen"], [LONG], ["kitchen", "garage"],
                  [f"{LONG} {i}" for i in range(8)], [f"{LONG} {i}" for i in range(11)]):
        node.show(snapshot(*(room(name, people, texts) for name in names)))
        browser.wait(f"snapshot.rooms.length === {len(names)}", "the channels")
        for width, height in SIZES:
            if height < 320:
                continue
            browser.resize(width, height)
            browser.wait(f"innerWidth === {width}", "the new size")
            where = f"{len(names)} channels at {width}x{height}"
            for is_open, parts in ((False, CONTROLS), (True, CHAT)):
                browser.run(f"openChat({json.dumps(is_open)})")
                lost = browser.run(UNREACHABLE % json.dumps(parts))
                assert not lost, f"{where}: out of reach: {lost}"
            lost = browser.run(LOST_CHANNELS) if len(names) > 1 else []
            assert not lost, f"{where}: out of reach: {lost}"
            wide = browser.run("document.documentElement.scrollWidth")
            assert wide <= width, f"{where}: {wide} pixels wide"
    browser.run("openChat(false)")
    browser.resize(1280, 720)
