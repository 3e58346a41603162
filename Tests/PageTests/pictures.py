"""Takes the pictures of the documents from the real program: `make pictures`.

    pictures.py MUSTER FOLDER

Five nodes on the loopback interface hold a call, four of them with footage as their cameras; the
page of the fifth is opened in headless Chromium, and its screenshot is written to FOLDER/call.png.
"""

import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile

from devtools import Browser

VECTORS = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "Vectors")
SIZE = (1280, 720)
# Seconds; the slowest of what is waited for takes 5 on an idle machine.
PATIENCE = 60
SPEECH = os.path.join(VECTORS, "media", "speech_16k.wav")
# Of each camera: the footage, and where a photograph's slow zoom is centred (0 to 1).
PEOPLE = {
    "Grace": ("portraits/grace.jpg", (0.5, 0.4)),
    "Eileen": ("portraits/eileen.jpg", (0.43, 0.3)),
    "Chelsea": ("portraits/chelsea.jpg", (0.5, 0.4)),
    "Matt": ("media/bunny_320x180.ivf", None),
}
MESSAGES = {
    "Grace": "The switch is in the attic, no uplink needed.",
    "Eileen": "Pulled the cable to the Internet a minute ago. Anyone noticed?",
    "Matt": "Not at all.",
}


def camera(folder, name):
    """The path of a source for `--video`: photographs become ten seconds of slow zoom."""
    footage, centre = PEOPLE[name]
    footage = os.path.join(VECTORS, footage)
    if centre is None:
        return footage
    path = os.path.join(folder, f"{name}.y4m")
    zoom = (f"zoompan=z='1.04+0.04*sin(2*PI*on/150)':x='(iw-iw/zoom)*{centre[0]}'"
            f":y='(ih-ih/zoom)*{centre[1]}':d=150:s=640x360:fps=15")
    subprocess.run(
        ["ffmpeg", "-v", "error", "-y", "-i", footage, "-vf", f"scale=2560:1440,{zoom}",
         "-pix_fmt", "yuv420p", path], check=True)
    return path


def cameras(folder):
    """The paths of sources for `--video`, by the user's name, each made when it is asked for."""
    made = {}

    def of(user):
        name = user.capitalize() if user.capitalize() in PEOPLE else "Matt"
        if name not in made:
            made[name] = camera(folder, name)
        return made[name]

    return of


class Person:
    """A node in the call."""

    def __init__(self, muster, folder, name, passphrase, *more):
        self.name = name
        self.process = subprocess.Popen(
            [muster, "join", "field-team", "--call", "--json", "--name", name, "--speaker", "none",
             "--interface", "lo", "--data", os.path.join(folder, name), *more],
            text=True,
            env={**os.environ, "MUSTER_PASSPHRASE": passphrase, "MUSTER_CONFIG": os.devnull},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def wait(self, name):
        """The next event of this name."""
        for line in self.process.stdout:
            event = json.loads(line)
            if event["event"] == name:
                return event
        raise RuntimeError(f"{self.name}'s node has ended without {name}")

    def say(self, text):
        self.process.stdin.write(json.dumps({"do": "say", "text": text}) + "\n")
        self.process.stdin.flush()

    def close(self):
        self.process.send_signal(signal.SIGINT)
        self.process.stdout.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def take(muster, scratch, folder):
    passphrase = secrets.token_hex(16)
    people = []
    try:
        viewer = Person(muster, scratch, "Ada", passphrase, "--view", "--video", "none",
                        "--audio", "tone", "--muted", "audio")
        people.append(viewer)
        url = viewer.wait("ready")["view"]
        viewer.wait("call.started")
        for name in PEOPLE:
            person = Person(muster, scratch, name, passphrase, "--no-view", "--video",
                            camera(scratch, name), "--audio",
                            SPEECH if name == "Eileen" else "none")
            people.append(person)
            person.wait("media.first-frame" if name == "Matt" else "call.joined")
        with Browser(SIZE) as browser:
            browser.open(url)
            browser.wait(
                "[...document.querySelectorAll('#grid .tile canvas')].filter((c) => c.width > 300)"
                f".length >= {len(PEOPLE)}", "the tiles", PATIENCE)
            browser.click("#talk")
            for person in people:
                if person.name in MESSAGES:
                    person.say(MESSAGES[person.name])
                    browser.wait(
                        "document.querySelector('#messages').textContent.includes("
                        f"{json.dumps(MESSAGES[person.name])})", "a message", PATIENCE)
            browser.wait(
                "!!document.querySelector('.tile.speaking')", "someone to speak", PATIENCE)
            browser.run("document.activeElement.blur()")
            browser.screenshot(os.path.join(folder, "call.png"))
    finally:
        for person in reversed(people):
            person.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="muster-pictures-") as scratch:
        take(os.path.abspath(sys.argv[1]), scratch, sys.argv[2])
