#!/usr/bin/env python3
"""Checks a running call page in headless Chromium.

    page_test.py URL [--tiles N] [--rate] [--fps F] [--seconds S] [--pattern]
                 [--do join,mute,...] [--slow-client] [--guard] [--senders FILE...] [--size WxH]
                 [--screenshot FILE]

URL is the one that `muster join` prints. The result is one JSON object on standard output with the
figures of every check; the names of those that failed come first. The exit code is 0 if all hold,
and 3 if all hold but for rates that the machine was too busy to show. The caller verifies the
effects of the actions on other nodes, by their events. Only the standard library is needed.
"""

import argparse
import http.client
import json
import socket
import sys
import time
from urllib.parse import parse_qs, urlparse

from devtools import Browser, WebSocket
from page_requests import check_requests

# A tile is live if its frame is not uniform and differs from the one 300 ms before.
LEAST_DEVIATION = 8
LEAST_DIFFERENCE = 2

PIXELS = """
(async () => {
  const small = new OffscreenCanvas(32, 18).getContext('2d', { willReadFrequently: true });
  const luma = (canvas) => {
    small.drawImage(canvas, 0, 0, 32, 18);
    const { data } = small.getImageData(0, 0, 32, 18);
    const result = [];
    for (let i = 0; i < data.length; i += 4) {
      result.push(0.299 * data[i] + 0.587 * data[i + 1] + 0.114 * data[i + 2]);
    }
    return result;
  };
  const canvases = [...document.querySelectorAll('#grid .tile canvas')];
  const before = canvases.map(luma);
  await new Promise((done) => setTimeout(done, 300));
  return canvases.map((canvas, index) => {
    const now = luma(canvas);
    const mean = now.reduce((a, b) => a + b) / now.length;
    const variance = now.reduce((a, b) => a + (b - mean) ** 2, 0) / now.length;
    const moved = now.reduce((a, b, i) => a + Math.abs(b - before[index][i]), 0) / now.length;
    return { tile: Number(canvas.dataset.tile), width: canvas.width, height: canvas.height,
             deviation: Math.sqrt(variance), difference: moved };
  });
})()
"""

# The blocks of MusterCodecs' TestPattern: 16 by 6 in the top quarter, Gray-coded number first,
# CRC-16/CCITT last.
PATTERN = """
(() => [...document.querySelectorAll('#grid .tile canvas')].map((canvas) => {
  const { width, height } = canvas;
  const context = new OffscreenCanvas(width, height).getContext('2d', { willReadFrequently: true });
  context.drawImage(canvas, 0, 0);
  const { data } = context.getImageData(0, 0, width, Math.ceil(height / 4));
  const bytes = new Array(12).fill(0);
  for (let bit = 0; bit < 96; bit += 1) {
    const column = bit % 16;
    const row = Math.floor(bit / 16);
    const x0 = Math.floor(column * width / 16), x1 = Math.floor((column + 1) * width / 16);
    const y0 = Math.floor(row * height / 24), y1 = Math.floor((row + 1) * height / 24);
    const dx = (x1 - x0) >> 2, dy = (y1 - y0) >> 2;
    let sum = 0, count = 0;
    for (let y = y0 + dy; y < y1 - dy; y += 1) {
      for (let x = x0 + dx; x < x1 - dx; x += 1) {
        sum += data[(y * width + x) * 4 + 1];
        count += 1;
      }
    }
    bytes[bit >> 3] = (bytes[bit >> 3] << 1 | (count && sum / count >= 128 ? 1 : 0)) & 255;
  }
  let crc = 0xffff;
  for (const byte of bytes.slice(0, 10)) {
    crc ^= byte << 8;
    for (let i = 0; i < 8; i += 1) crc = (crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1) & 0xffff;
  }
  let number = null;
  if (crc === (bytes[10] << 8 | bytes[11])) {
    number = bytes.slice(0, 4).reduce((a, b) => (a << 8 | b) >>> 0, 0);
    for (const shift of [1, 2, 4, 8, 16]) number = (number ^ number >>> shift) >>> 0;
  }
  return { tile: Number(canvas.dataset.tile), number, at: performance.now() };
}))()
"""

# The element to click, and the condition that holds once the node has acted.
ACTIONS = {
    "join": ("#enter", "document.body.dataset.view === 'call'"),
    "start": ("#enter", "document.body.dataset.view === 'call'"),
    "leave": ("#leave", "document.body.dataset.view === 'lobby'"),
    "mute": ("#mic", "document.querySelector('#mic').ariaPressed === 'true'"),
    "unmute": ("#mic", "document.querySelector('#mic').ariaPressed === 'false'"),
    "stop-video": ("#cam", "document.querySelector('#cam').ariaPressed === 'true'"),
    "people": ("#people > summary", "document.querySelector('#people').open"),
    "mute-member": ("#roster [data-mutes=audio]",
                    "!document.querySelector('#roster [data-mutes=audio]')"),
    "ask-removal": ("#roster [data-removes=asks]",
                    "document.querySelector('#roster [data-removes=now]') !== null"),
    "remove-member": ("#roster [data-removes=now]",
                      "!document.querySelector('#roster [data-removes]')"),
    "start-video": ("#cam", "document.querySelector('#cam').ariaPressed === 'false'"),
}


# The exit code if all checks hold but for those that a machine without idle time cannot show.
SKIPPED = 3

# Seconds until the page reaches a state. Generous, since a slow machine is no fault of the page.
PATIENCE = 60


class Checks:
    def __init__(self):
        self.results = {}
        self.is_saturated = False

    def add(self, name, holds, **figures):
        self.results[name] = {"ok": bool(holds), **figures}
        if not holds and self.is_saturated:
            self.results[name]["skipped"] = "the machine has no idle time"

    @property
    def failed(self):
        return [
            name for name, result in self.results.items()
            if not result["ok"] and "skipped" not in result]

    @property
    def skipped(self):
        return [name for name, result in self.results.items() if "skipped" in result]


def statistics(browser):
    return {int(k): v for k, v in browser.run("window.__stats").items()}


def timed_statistics(browser):
    """The counters, and the time in seconds at which the page sampled them."""
    found = browser.run("({all: window.__stats, at: window.__statsAt})")
    return {int(k): v for k, v in found["all"].items()}, found["at"] / 1000


def check_tiles(browser, options, checks):
    """Expects this number of tiles, all of them with moving video."""
    start = time.monotonic()
    try:
        browser.wait(
            f"document.querySelectorAll('#grid .tile.live').length === {options.tiles}",
            f"{options.tiles} live tiles", PATIENCE)
    except TimeoutError as error:
        checks.add("tiles", False, reason=str(error), statistics=statistics(browser))
        return
    after = time.monotonic() - start
    pixels = browser.run(PIXELS)
    checks.add("tiles", len(pixels) == options.tiles, count=len(pixels), after=round(after, 2))
    moving = [
        p for p in pixels
        if p["deviation"] > LEAST_DEVIATION and p["difference"] > LEAST_DIFFERENCE]
    checks.add("moving", len(moving) == len(pixels) > 0, pixels=pixels)


def check_rate(browser, options, checks, name="rate"):
    """Every tile draws at the expected rate, without a gap or a decoder lost."""
    busy, total = cpu_time()
    before, began = timed_statistics(browser)
    first = browser.run(PATTERN) if options.pattern else []
    time.sleep(options.seconds)
    last = browser.run(PATTERN) if options.pattern else []
    after, ended = timed_statistics(browser)
    tiles = {}
    for tile, now in after.items():
        if tile not in before or now["rx"] == before[tile]["rx"]:
            continue
        then = before[tile]
        tiles[tile] = {
            "drawnPerSecond": round((now["drawn"] - then["drawn"]) / (ended - began), 2),
            "keyRequests": now["keyRequests"] - then["keyRequests"],
            "resets": now["resets"] - then["resets"],
            "latencyMs": now["latencyMs"] and round(now["latencyMs"], 1),
            "size": f"{now['width']}x{now['height']}",
        }
    remote = {tile: figures for tile, figures in tiles.items() if tile != 0}
    good = len(remote) >= options.tiles and all(
        f["drawnPerSecond"] >= 0.9 * options.fps and f["resets"] == 0 for f in remote.values())
    busy, total = cpu_time()[0] - busy, cpu_time()[1] - total
    # The rate on a machine with hardly any idle time says nothing about the page.
    checks.is_saturated = busy > 0.95 * total
    checks.add(name, good, tiles=tiles, busy=round(busy / max(total, 1), 3))
    if options.pattern:
        check_pattern(first, last, options, checks, name)
    checks.is_saturated = False


def cpu_time():
    """The machine's CPU time since it started, in ticks: busy, and in total."""
    with open("/proc/stat", encoding="ascii") as stat:
        ticks = [int(field) for field in stat.readline().split()[1:9]]
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)


def check_pattern(first, last, options, checks, name):
    """The frame numbers in the pixels advance at the source's rate."""
    rates = {}
    for start in first:
        end = next((e for e in last if e["tile"] == start["tile"]), None)
        if end and start["number"] is not None and end["number"] is not None:
            rates[start["tile"]] = round(
                (end["number"] - start["number"]) * 1000 / (end["at"] - start["at"]), 2)
    good = len(rates) == options.tiles and all(
        abs(rate - options.fps) <= 0.1 * options.fps for rate in rates.values())
    checks.add(f"{name}-pattern", good, perSecond=rates)


def do_actions(browser, options, checks):
    for action in filter(None, options.do.split(",")):
        selector, expected = ACTIONS[action]
        start = time.monotonic()
        try:
            browser.wait(
                f"!document.querySelector('{selector}').disabled", f"{selector} to be usable",
                PATIENCE)
            browser.click(selector)
            browser.wait(expected, f"the page to show '{action}'", PATIENCE)
            checks.add(f"do-{action}", True, after=round(time.monotonic() - start, 3))
        except (TimeoutError, RuntimeError) as error:
            checks.add(f"do-{action}", False, reason=str(error))


def status(host, port, path, method="GET", headers=None):
    connection = http.client.HTTPConnection(host, port, timeout=5)
    connection.putrequest(method, path, skip_host=True)
    for name, value in {"Host": f"{host}:{port}", **(headers or {})}.items():
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status, dict(answer.getheaders())


def check_guard(url, checks):
    """Only the page that the node served is admitted."""
    parts = urlparse(url)
    host, port = parts.hostname, parts.port
    token = parse_qs(parts.query)["t"][0]
    wrong = ("0" if token[0] != "0" else "1") + token[1:]
    own = f"http://{host}:{port}"
    code, headers = status(host, port, f"/?t={token}")
    lower = {name.lower(): value for name, value in headers.items()}
    safe = (
        "default-src 'none'" in lower.get("content-security-policy", "")
        and lower.get("cache-control") == "no-store"
        and lower.get("x-content-type-options") == "nosniff")
    checks.add("guard-page", code == 200 and safe, status=code, headers=lower)
    refused = {
        "no token": status(host, port, "/"),
        "wrong token": status(host, port, f"/?t={wrong}"),
        "short token": status(host, port, f"/?t={token[:-1]}"),
        "wrong token, script": status(host, port, f"/app.js?t={wrong}"),
        "foreign host": status(host, port, f"/?t={token}", headers={"Host": f"evil.test:{port}"}),
        "host without port": status(host, port, f"/?t={token}", headers={"Host": host}),
        "foreign origin": status(
            host, port, f"/?t={token}", headers={"Origin": "http://evil.test"}),
        "post, foreign origin": status(
            host, port, f"/?t={token}", "POST", {"Origin": "http://evil.test"}),
    }
    codes = {name: answer[0] for name, answer in refused.items()}
    codes["unknown path"] = status(host, port, f"/etc/passwd?t={token}")[0]
    codes["post"] = status(host, port, f"/?t={token}", "POST", {"Origin": own})[0]
    expected = {**{name: 403 for name in refused}, "unknown path": 404, "post": 405}
    checks.add("guard-requests", codes == expected, statuses=codes)
    sockets = {
        "own": WebSocket(f"ws://{host}:{port}/ws?t={token}", origin=own),
        "wrong token": WebSocket(f"ws://{host}:{port}/ws?t={wrong}", origin=own),
        "no token": WebSocket(f"ws://{host}:{port}/ws", origin=own),
        "no origin": WebSocket(f"ws://{host}:{port}/ws?t={token}"),
        "foreign origin": WebSocket(
            f"ws://{host}:{port}/ws?t={token}", origin="http://evil.test"),
        "foreign host": WebSocket(
            f"ws://{host}:{port}/ws?t={token}", origin=own, host=f"evil.test:{port}"),
    }
    codes = {name: opened.status for name, opened in sockets.items()}
    for opened in sockets.values():
        opened.close()
    expected = {**{name: 403 for name in sockets}, "own": 101}
    checks.add("guard-sockets", codes == expected, statuses=codes)


def open_slow_client(url):
    """A second page that never reads from its connection."""
    parts = urlparse(url)
    slow = WebSocket(
        f"ws://{parts.netloc}/ws?{parts.query}", origin=f"http://{parts.netloc}")
    slow.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    return slow


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("url")
    parser.add_argument("--tiles", type=int, default=1, help="other participants with a picture")
    parser.add_argument("--rate", action="store_true", help="the tiles draw every frame")
    parser.add_argument("--fps", type=float, default=30)
    parser.add_argument("--seconds", type=float, default=5, help="how long rates are measured")
    parser.add_argument("--pattern", action="store_true", help="sources are the test pattern")
    parser.add_argument("--enter", action="store_true", help="join or start the call first")
    parser.add_argument("--do", default="", help=", ".join(ACTIONS) + "; in order, at the end")
    parser.add_argument("--slow-client", action="store_true")
    parser.add_argument("--senders", nargs="*", default=[], help="the events of the other nodes")
    parser.add_argument("--guard", action="store_true", help="try wrong tokens, hosts, origins")
    parser.add_argument("--size", default="1280x720")
    parser.add_argument("--screenshot")
    return parser.parse_args()


def main():
    options, checks = parse(), Checks()
    if options.guard:
        check_guard(options.url, checks)
    with Browser(tuple(int(side) for side in options.size.split("x"))) as browser:
        browser.open(options.url)
        browser.wait(
            "document.querySelector('#link')?.className === 'link up'", "the node", PATIENCE)
        browser.wait("document.body.dataset.view !== 'loading'", "the first snapshot", PATIENCE)
        if options.enter and browser.run("document.body.dataset.view") == "lobby":
            browser.click("#enter")
        if options.tiles:
            check_tiles(browser, options, checks)
        if options.senders:
            check_requests(browser, options.senders, PATIENCE, checks)
        if options.rate:
            check_rate(browser, options, checks)
        if options.slow_client:
            slow = open_slow_client(options.url)
            check_rate(browser, options, checks, "rate-beside-slow-client")
            slow.close()
        if options.screenshot:
            browser.screenshot(options.screenshot)
        do_actions(browser, options, checks)
        problems = browser.problems()
        checks.add("console", not problems, problems=problems)
    print(json.dumps({"failed": checks.failed, "checks": checks.results}, indent=1))
    if checks.failed:
        return 1
    return SKIPPED if checks.skipped else 0


if __name__ == "__main__":
    sys.exit(main())
