"""Links: anyone can make one, and one click opens it."""

import os
import pty
import subprocess

from check import check
from checks_rights import LIMIT, QUIET, created, data, invite
from node import clean_environment


def _answered(t, url, settings, answer):
    """Joins by a link at a terminal, and answers its question; returns all that was shown."""
    ours, theirs = pty.openpty()
    joins = subprocess.Popen(
        [t.muster, "join", "--ask", "--invite", url, "--interface", "lo", "--no-view", "--for", "5",
         "--name", answer, "--data", data(t, answer), "--config", settings],
        stdin=theirs, stdout=theirs, stderr=theirs, env=clean_environment(t.folder),
        start_new_session=True)
    os.close(theirs)
    t.later(joins.kill)
    shown_text, is_asked = b"", False
    while True:
        try:
            shown_text += os.read(ours, 4096)
        except OSError:  # The terminal has no writer any more.
            break
        if not is_asked and b"Join? [y/N]" in shown_text:
            is_asked = True
            os.write(ours, answer.encode() + b"\n")
    os.close(ours)
    t.expect(is_asked and joins.wait(LIMIT) == 0, f"{joins.returncode}: {shown_text!r}")
    return shown_text.decode()


@check()
def a_link_asks_before_anything_is_sent(t):
    """What the settings say about calls and devices is no answer."""
    created(t)
    owner = t.node("owner", channels=[t.channel], **QUIET)
    owner.ready()
    url = invite(t, "presenter")
    settings = os.path.join(t.folder, "settings.toml")
    with open(settings, "w", encoding="utf-8") as file:
        file.write('call = true\nvideo = "test:320x180@15"\naudio = "none"\nspeaker = "none"\n')
    asked = t.now()
    for answer in ("no", ""):
        text = _answered(t, url, settings, answer or "blank")
        t.expect("nothing was joined" in text and "at once" in text, text)
        t.expect(t.channel in text and "presenter" in text and "made by" in text, text)
    t.expect(not owner.all("link.up", since=asked), "something was sent")
    _answered(t, url, settings, "yes")
    owner.wait("call.joined", LIMIT, asked)
