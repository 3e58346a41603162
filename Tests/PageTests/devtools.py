"""Drives a browser over the DevTools protocol, with the standard library only."""

import base64
import json
import os
import shutil
import socket
import struct
import subprocess
import tempfile
import time
from urllib.parse import urlparse

FLAGS = [
    "--headless=new",
    "--remote-debugging-port=0",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-background-timer-throttling",
    "--disable-renderer-backgrounding",
    "--autoplay-policy=no-user-gesture-required",
]

# The text of keys that do not write their name, and their code.
KEYS = {"Tab": ("", 9), "Escape": ("", 27), "Enter": ("\r", 13)}


class WebSocket:
    """A minimal WebSocket client (RFC 6455)."""

    def __init__(self, url, origin=None, host=None, timeout=10):
        parts = urlparse(url)
        self.socket = socket.create_connection((parts.hostname, parts.port), timeout)
        path = parts.path + ("?" + parts.query if parts.query else "")
        key = base64.b64encode(os.urandom(16)).decode()
        lines = [
            f"GET {path} HTTP/1.1",
            f"Host: {host or parts.netloc}",
            "Upgrade: websocket",
            "Connection: Upgrade",
            f"Sec-WebSocket-Key: {key}",
            "Sec-WebSocket-Version: 13",
        ]
        if origin:
            lines.append(f"Origin: {origin}")
        self.socket.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        head = b""
        while b"\r\n\r\n" not in head:
            more = self.socket.recv(1)
            if not more:
                break
            head += more
        self.status = int(head.split(b" ", 2)[1]) if head.count(b" ") >= 2 else 0
        if self.status != 101:
            self.socket.close()

    def send(self, text):
        data = text.encode()
        mask = os.urandom(4)
        if len(data) < 126:
            head = struct.pack("!BB", 0x81, 0x80 | len(data))
        elif len(data) < 65536:
            head = struct.pack("!BBH", 0x81, 0x80 | 126, len(data))
        else:
            head = struct.pack("!BBQ", 0x81, 0x80 | 127, len(data))
        masked = bytes(byte ^ mask[i & 3] for i, byte in enumerate(data))
        self.socket.sendall(head + mask + masked)

    def _exactly(self, count):
        data = b""
        while len(data) < count:
            more = self.socket.recv(min(count - len(data), 1 << 20))
            if not more:
                raise ConnectionError("the other side closed the WebSocket")
            data += more
        return data

    def receive(self, timeout=None):
        """The next message as (opcode, bytes), reassembled from its fragments."""
        self.socket.settimeout(timeout)
        opcode, data = 0, b""
        while True:
            first, second = self._exactly(2)
            size = second & 127
            if size == 126:
                size = struct.unpack("!H", self._exactly(2))[0]
            elif size == 127:
                size = struct.unpack("!Q", self._exactly(8))[0]
            part = self._exactly(size)
            if first & 15:
                opcode = first & 15
            data += part
            if first & 128:
                return opcode, data

    def close(self):
        self.socket.close()


class Page:
    """What checks do with a page, whatever the browser."""

    def wait(self, expression, what, timeout=10):
        """Polls until the expression is true."""
        deadline = time.monotonic() + timeout
        while True:
            value = self.run(expression)
            if value:
                return value
            if time.monotonic() > deadline:
                raise TimeoutError(f"waited {timeout} s in vain for {what}")
            time.sleep(0.05)

    def centre(self, selector):
        """Where the element can be clicked."""
        place = self.run(
            "(() => { const e = document.querySelector(%s); if (!e) return null;"
            " const r = e.getBoundingClientRect();"
            " return {x: r.x + r.width / 2, y: r.y + r.height / 2}; })()" % json.dumps(selector))
        if place is None:
            raise RuntimeError(f"nothing to click at {selector}")
        return place

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
        shutil.rmtree(self.profile, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Browser(Page):
    """Headless Chromium with one page."""

    def __init__(self, size=(1280, 720), binary="chromium", extra=()):
        self.profile = tempfile.mkdtemp(prefix="muster-page-")
        flags = FLAGS + [f"--user-data-dir={self.profile}", f"--window-size={size[0]},{size[1]}"]
        if os.geteuid() == 0:
            flags.append("--no-sandbox")
        self.log = open(os.path.join(self.profile, "stderr"), "wb")
        self.process = subprocess.Popen(
            [binary, *flags, *extra, "about:blank"], stdout=subprocess.DEVNULL, stderr=self.log)
        self.number = 0
        self.events = []
        try:
            self._attach(size)
        except BaseException:
            self.close()
            raise

    def _attach(self, size):
        port_file = os.path.join(self.profile, "DevToolsActivePort")
        deadline = time.monotonic() + 60
        while not (os.path.exists(port_file) and open(port_file).read().count("\n") >= 1):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("chromium did not start: is it installed?")
            time.sleep(0.05)
        port, path = open(port_file).read().split("\n")[:2]
        self.socket = WebSocket(f"ws://127.0.0.1:{port}{path}")
        self.session = None
        targets = self.call("Target.getTargets")["targetInfos"]
        self.target = next(t for t in targets if t["type"] == "page")["targetId"]
        self.session = self.call(
            "Target.attachToTarget", targetId=self.target, flatten=True)["sessionId"]
        self.call("Page.enable")
        self.call("Runtime.enable")
        self.call("Log.enable")
        self.resize(*size)

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        self.socket.send(json.dumps(message))
        while True:
            answer = json.loads(self.socket.receive(timeout=60)[1])
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            if "method" in answer:
                self.events = self.events[-999:] + [answer]

    def resize(self, width, height):
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height,
            deviceScaleFactor=1, mobile=False)

    def prefer(self, scheme):
        """Emulates the system's colour scheme, `light` or `dark`."""
        self.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, url):
        self.call("Page.navigate", url=url)

    def cover(self):
        """Opens another tab in front of the page."""
        self.cover_target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.call("Target.activateTarget", targetId=self.cover_target)
        self.wait("document.hidden", "the page to be hidden")

    def uncover(self):
        """Closes that tab, so that the page is in front again."""
        self.call("Target.closeTarget", targetId=self.cover_target)
        self.call("Target.activateTarget", targetId=self.target)
        self.wait("!document.hidden", "the page to be in front")

    def run(self, expression):
        """The value of a JavaScript expression in the page; promises are awaited."""
        result = self.call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True,
            userGesture=True)
        if "exceptionDetails" in result:
            details = result["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description", details["text"]))
        return result["result"].get("value")

    def click(self, selector):
        """Clicks the centre of the element with a real mouse event."""
        place = self.centre(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.call(
                "Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **place)

    def key(self, key):
        text, code = KEYS.get(key, (key, 0))
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent", type=kind, key=key, text=text,
                windowsVirtualKeyCode=code)

    def screenshot(self, path):
        """As a PNG or, where the path ends so, as a JPEG."""
        how = {"format": "jpeg", "quality": 88} if path.endswith(".jpg") else {"format": "png"}
        data = self.call("Page.captureScreenshot", **how)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def problems(self):
        """The page's exceptions, refused resources and console errors."""
        self.run("1")
        found = []
        for event in self.events:
            params = event.get("params", {})
            if event["method"] == "Runtime.exceptionThrown":
                found.append(params["exceptionDetails"].get("text", "exception"))
            elif event["method"] == "Log.entryAdded" and params["entry"]["level"] == "error":
                found.append(params["entry"]["text"])
            elif event["method"] == "Runtime.consoleAPICalled" and params["type"] == "error":
                found.append(" ".join(str(a.get("value", "")) for a in params["args"]))
        return found
