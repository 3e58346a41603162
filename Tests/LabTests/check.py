"""A check: a function whose name is a claim, and the context that it runs in."""

import os
import secrets
import shutil
import time

from capture import Capture
from lab import Lan
from media import Footage
from nat import Internet, reason_against_nat
from node import Node, Unexpected

_all = []


class Skip(Exception):
    """The check cannot run on this machine; the text gives the reason."""


class Check:
    def __init__(self, function, needs, in_gate, measures):
        self.function = function
        self.name = function.__name__
        self.needs = needs
        self.in_gate = in_gate
        self.measures = measures


def check(needs=(), gate=False, measures=False):
    """Registers a check. `needs`: "namespaces", "ffmpeg", "dht".

    A check that `measures` times, rates or losses has the machine to itself.

    A check of the `gate` measures no time: a slow machine makes it slow, and never fail. What it
    waits for has a limit of at least ten times what it takes on an idle machine."""
    def register(function):
        needed = (needs,) if isinstance(needs, str) else needs
        _all.append(Check(function, needed, gate, measures))
        return function
    return register


def registered():
    return list(_all)


class Context:
    """One run of one check: creates nodes and networks, collects figures, and cleans up."""

    def __init__(self, muster, folder, footage, is_long=False, judges_times=True):
        self.muster = muster
        self.folder = folder
        self.is_long = is_long
        self.judges_times = judges_times
        self.footage: Footage = footage
        self.figures = []
        self.tables = []
        self.wrong = []
        self.nodes = []
        # Whether the run ends before the check does.
        self.is_interrupted = False
        self._closers = []
        # Random names, so that nodes of concurrent runs on this machine do not meet.
        mark = secrets.token_hex(4)
        self.channel = f"lab-{mark}"
        self.passphrase = f"correct-horse-{mark}"
        os.makedirs(folder)

    def built(self, program):
        """The path of another program that is built beside the command."""
        path = os.path.join(os.path.dirname(self.muster), program)
        if not os.access(path, os.X_OK):
            self.skip(f"no {program} beside the command: make lab builds it")
        return path

    # Nodes and networks

    def node(self, name, *more, host=None, channels=None, video="test:320x180@15", audio="tone",
             passphrase=None, data=True, call=True, record=False, watches=True, environment=None,
             speaker="none", wrap=()):
        """Starts a node, which discovers others on loopback or on the LAN of its host. `data` is
        True for a directory of its own, False for the default, or a path; no `passphrase` when it
        is False. A node that `watches` requests all video at full size, as one that records
        does."""
        number = sum(1 for node in self.nodes if node.folder.startswith(self._path(name)))
        folder = self._path(name) + (f".{number}" if number else "")
        arguments = [
            *(channels or [self.channel]), "--name", name, "--json", "--no-view",
            "--video", video, "--audio", audio, "--speaker", speaker,
        ]
        if passphrase is not False:
            arguments += ["--passphrase", passphrase or self.passphrase]
        if data:
            arguments += ["--data", self._path(name) + ".data" if data is True else data]
        if call:
            arguments += ["--call"]
        if record:
            arguments += ["--record", os.path.join(folder, "record")]
        elif watches:
            arguments += ["--max-video", "4096x4096"]
        if host is None:
            arguments += ["--interface", "lo"]
        node = Node(self.muster, name, [*arguments, *more], folder, host, environment, wrap)
        self.nodes.append(node)
        return node

    def _path(self, name):
        safe = "".join(letter if letter.isalnum() else "_" for letter in name)
        return os.path.join(self.folder, safe)

    def pair(self, **arguments):
        """Two nodes on loopback that receive each other's video."""
        first = self.node("anna", **arguments)
        first.ready()
        second = self.node("berta", **arguments)
        self.meet(first, second)
        return first, second

    def meet(self, *nodes, since=0.0):
        """Waits until all nodes have a first frame of all others; returns the last one's time."""
        return max(
            one.first_frame(other, since=since)["at"]
            for one in nodes for other in nodes if one is not other)

    def lan(self, count, faulty=False):
        lan = Lan.switched(count) if faulty else Lan.bridged(count)
        self._closers.append(lan.close)
        return lan

    def internet(self, delay=0):
        reason = reason_against_nat()
        if reason:
            self.skip(reason)
        internet = Internet(delay)
        self._closers.append(internet.close)
        return internet

    def later(self, close):
        """Calls `close` at the end of the check in any case."""
        self._closers.append(close)

    def capture(self, host):
        capture = Capture(host.namespace)
        self._closers.append(capture.stop)
        return capture

    def close(self, keep=False):
        for node in self.nodes:
            node.close()
        for close in reversed(self._closers):
            close()
        if not keep:
            shutil.rmtree(self.folder, ignore_errors=True)

    # Findings

    def figure(self, what, value, unit="", at_most=None, at_least=None):
        """Reports a figure; outside of its limits the check fails, but continues."""
        text = f"{value:.3g}" if isinstance(value, float) else str(value)
        limit = ""
        if at_most is not None:
            limit = f" (<= {at_most:g})"
        elif at_least is not None:
            limit = f" (>= {at_least:g})"
        reported = f"{what} {text}{' ' + unit if unit else ''}{limit}"
        self.figures.append(reported)
        high = at_most is not None and value > at_most
        low = at_least is not None and value < at_least
        if high or low:
            self.wrong.append(reported)

    def duration(self, what, seconds, at_most):
        """Reports a time; a longer one than `at_most` fails the check, but never in the gate."""
        self.figure(what, seconds, "s", at_most=at_most if self.judges_times else None)

    def table(self, head, rows):
        """Reports a table in Markdown."""
        for row in (head, ["---"] * len(head), *rows):
            self.tables.append(f"| {' | '.join(row)} |".replace("|  |", "| |"))

    def expect(self, holds, what):
        """Records a failure and continues; `what` is a text, or the event that is wrong."""
        if not holds:
            self.wrong.append(str(what))

    def require(self, holds, what):
        """Records a failure and ends the check."""
        if not holds:
            raise Unexpected(what)

    def skip(self, reason):
        raise Skip(reason)

    def pause(self, seconds):
        time.sleep(seconds)

    def video_continues(self, *nodes, since=None, within=6.0):
        """All nodes receive new frames of all others and are in all rosters; returns
        how long after `since` that was so."""
        since = time.monotonic() if since is None else since
        last = since
        for one in nodes:
            for other in nodes:
                if one is not other:
                    last = max(last, self._wait_for_video(one, other, since, within))
            wanted = {other.id for other in nodes if other is not one}
            roster = {member for _, member in one.roster()}
            self.expect(wanted <= roster, f"{one.name}'s roster: {roster}")
        return last - since

    def _wait_for_video(self, one, other, since, within):
        before = None
        looked_from = since
        while True:
            event = one.wait("stats", 5, looked_from)
            looked_from = event["at"] + 0.001
            frames = next((peer["in"]["frames"] for peer in event["peers"]
                           if peer["member"] == other.id and peer["in"]), None)
            # Growth between two samples after `since`; earlier frames prove nothing.
            if before is not None and frames is not None and frames > before + 5:
                return event["at"]
            before = frames
            self.require(event["at"] < since + within,
                         f"{one.name} gets no pictures of {other.name}")

    def until(self, holds, what, limit=60.0):
        """Waits until `holds()` is true, which it then returns."""
        end = time.monotonic() + limit
        while True:
            found = holds()
            if found:
                return found
            self.require(not self.is_interrupted, "the run was interrupted")
            self.require(time.monotonic() < end, f"not within {limit:g} s: {what}")
            time.sleep(0.05)

    def video_grows(self, *nodes, by=30):
        """Waits until every node reports this many more frames of every other one."""
        pairs = [(one, other) for one in nodes for other in nodes if one is not other]

        def frames(one, other):
            """By the latest statistics that name the other node."""
            return next((peer["in"]["frames"] for event in reversed(one.all("stats"))
                         for peer in event["peers"] if peer["member"] == other.id and peer["in"]), 0)

        before = [frames(*pair) for pair in pairs]
        self.until(
            lambda: all(frames(*pair) >= start + by for pair, start in zip(pairs, before)),
            f"{by} more frames at each of {[node.name for node in nodes]}")

    def now(self):
        return time.monotonic()

    def all_well(self):
        """Conditions that hold for every node at the end of every check."""
        for node in self.nodes:
            self.expect(not node.broken, f"{node.name}: a line that is no event")
            code = node.process.poll()
            self.expect(code is None or code >= 0 or code in (-2, -9, -15),
                        f"{node.name}: ended by signal {-(code or 0)}")
            for word in ("Fatal error", "Stack dump", "Assertion"):
                self.expect(word not in node.errors, f"{node.name}: \"{word}\" on standard error")
