"""Drives Firefox over WebDriver BiDi, with the standard library only."""

import json
import os
import re
import subprocess
import tempfile
import time

from devtools import Page, WebSocket

# Scroll bars beside the content, as on most desktops, rather than above it.
PREFERENCES = """
user_pref("widget.gtk.overlay-scrollbars.enabled", false);
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("toolkit.telemetry.reportingpolicy.firstRun", false);
user_pref("app.update.enabled", false);
"""
# The code points of keys that do not write their name, by WebDriver.
KEYS = {"Tab": "\ue004", "Escape": "\ue00c", "Enter": "\ue006"}


class Firefox(Page):
    """Headless Firefox with one page."""

    def __init__(self, size=(1280, 720), binary="firefox-esr"):
        self.profile = tempfile.mkdtemp(prefix="muster-page-")
        with open(os.path.join(self.profile, "user.js"), "w", encoding="utf-8") as file:
            file.write(PREFERENCES)
        log = os.path.join(self.profile, "stderr")
        self.log = open(log, "wb")
        self.process = subprocess.Popen(
            [binary, "--headless", "--no-remote", "--remote-debugging-port", "0",
             "--profile", self.profile, "about:blank"],
            stdout=subprocess.DEVNULL, stderr=self.log, env={**os.environ, "HOME": self.profile})
        self.number = 0
        self.found = []
        try:
            self._attach(log, size)
        except BaseException:
            self.close()
            raise

    def _attach(self, log, size):
        deadline = time.monotonic() + 60
        pattern = re.compile(r"WebDriver BiDi listening on (ws://\S+)")
        while not (address := pattern.search(open(log, encoding="utf-8").read())):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("firefox did not start: is it installed?")
            time.sleep(0.05)
        self.socket = WebSocket(address[1] + "/session")
        self.call("session.new", capabilities={})
        self.call("session.subscribe", events=["log.entryAdded"])
        # In the window that it starts with, keys reach the page, but do not press its buttons.
        self.context = self.call("browsingContext.create", type="window")["context"]
        self.resize(*size)

    def call(self, method, **params):
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": params}))
        while True:
            answer = json.loads(self.socket.receive(timeout=60)[1])
            if answer.get("id") == self.number:
                if answer["type"] == "error":
                    raise RuntimeError(f"{method}: {answer['message']}")
                return answer["result"]
            if answer.get("method") == "log.entryAdded" and answer["params"]["level"] == "error":
                self.found.append(answer["params"]["text"])

    def resize(self, width, height):
        self.call("browsingContext.setViewport", context=self.context,
                  viewport={"width": width, "height": height})

    def open(self, url):
        self.call("browsingContext.navigate", context=self.context, url=url, wait="complete")

    def run(self, expression):
        """The value of a JavaScript expression in the page; promises are awaited."""
        answer = self.call(
            "script.evaluate", awaitPromise=True, target={"context": self.context},
            userActivation=True,
            expression=f"(async () => JSON.stringify(await ({expression}) ?? null))()")
        if answer["type"] == "exception":
            raise RuntimeError(answer["exceptionDetails"]["text"])
        return json.loads(answer["result"]["value"])

    def click(self, selector):
        """Clicks the centre of the element with a real mouse event."""
        place = {side: int(value) for side, value in self.centre(selector).items()}
        self._act("pointer", [
            {"type": "pointerMove", **place}, {"type": "pointerDown", "button": 0},
            {"type": "pointerUp", "button": 0}])

    def key(self, key):
        value = KEYS.get(key, key)
        self._act("key", [{"type": "keyDown", "value": value}, {"type": "keyUp", "value": value}])

    def _act(self, kind, actions):
        self.call("input.performActions", context=self.context,
                  actions=[{"type": kind, "id": kind, "actions": actions}])

    def problems(self):
        """The page's exceptions and console errors."""
        self.run("1")
        return self.found
