"""Whether the other nodes send what the page's tiles can use, by their `layer` events."""

import json
import time

# A click on the first tile of a member whose button has this class.
CLICK = """(() => {
  const tile = document.querySelector(`#grid .tile[data-member^="%s"]`);
  tile.querySelector('.%s').click();
})()"""


class Senders:
    """What the other nodes send to the page's node, from their `layer` events."""

    def __init__(self, files):
        self.files = {}
        for path in files:
            with open(path, encoding="utf-8") as lines:
                self.files[json.loads(lines.readline())["id"]] = path

    def sent(self, receiver):
        """The layer that each sends to `receiver` now, by the sender's id."""
        result = {}
        for sender, path in self.files.items():
            with open(path, encoding="utf-8") as lines:
                for line in lines:
                    if '"event":"layer"' in line and line.endswith("\n"):
                        event = json.loads(line)
                        if event["direction"] == "out" and event["member"] == receiver:
                            result[sender] = event["to"]
        return result


def check_requests(browser, files, patience, checks):
    """The others send what the tiles can use: after a pin, a hidden tile, a hidden tab."""
    senders = Senders(files)
    own = browser.run("snapshot.self.id")
    first, *rest = sorted(senders.files)

    def expect(name, act, expected):
        start = time.monotonic()
        act()
        sent = senders.sent(own)
        while sent != expected and time.monotonic() - start < patience:
            time.sleep(0.02)
            sent = senders.sent(own)
        checks.add(f"requests-{name}", sent == expected, after=round(time.monotonic() - start, 2),
                   sent=sent)

    def click(button):
        return lambda: browser.run(CLICK % (first, button))

    equal = dict.fromkeys(senders.files, "640x360@30")
    pinned = {first: "640x360@30", **dict.fromkeys(rest, "320x180@30")}
    expect("equal", lambda: None, equal)
    expect("pin", click("pin"), pinned)
    expect("unpin", click("pin"), equal)
    expect("hide", click("hide"), {**equal, first: "off"})
    expect("unhide", lambda: browser.click("#unhide"), equal)
    expect("hidden-tab", browser.cover, dict.fromkeys(senders.files, "off"))
    expect("visible-tab", browser.uncover, equal)
