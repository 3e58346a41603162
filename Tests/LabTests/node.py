"""A `muster join --json` process: timestamped events, commands and exit."""

import fcntl
import glob
import json
import os
import signal
import subprocess
import threading
import time


class Unexpected(Exception):
    """An expected event is missing, or an unexpected one arrived."""


class Node:
    """Starts at once, on a lab host or in this process's namespace; `wrap` precedes the command.
    `script` is run by a shell instead, and ends with the command."""

    def __init__(self, muster, name, arguments, folder, host=None, environment=None, wrap=(),
                 script=None):
        self.name = name
        self.folder = folder
        self.host = host
        os.makedirs(folder, exist_ok=True)
        command = ["bash", "-e", "-c", script] if script else [*wrap, muster, "join", *arguments]
        if host is not None:
            command = ["ip", "netns", "exec", host.namespace, *command]
        self.command = command
        self.errors_path = os.path.join(folder, "stderr")
        self.raw = bytearray()
        self.events = []
        self.broken = []
        self._changed = threading.Condition()
        self._closed = False
        self.exited_at = None
        self.started_at = time.monotonic()
        with open(self.errors_path, "wb") as errors:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                env=clean_environment(folder, environment), cwd=folder)
        # The smallest pipe that the kernel provides, so that a stalled reader soon has an effect.
        fcntl.fcntl(self.process.stdout, fcntl.F_SETPIPE_SZ, 4096)
        self._reading = threading.Event()
        self._reading.set()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            at = time.monotonic()
            self._reading.wait()
            with self._changed:
                self.raw += line
                try:
                    event = json.loads(line)
                    event["event"], event["t"]
                except (ValueError, KeyError, TypeError):
                    self.broken.append(line)
                else:
                    event["at"] = at
                    self.events.append(event)
                self._changed.notify_all()
        self.process.wait()
        with self._changed:
            # Standard output closes when the process exits, which gives the exact time.
            self.exited_at = time.monotonic()
            self._closed = True
            self._changed.notify_all()

    # Events

    def wait(self, name, limit=20.0, since=0.0, where=None, **fields):
        """The first event of this name, with these fields, that came at `since` or later."""
        end = time.monotonic() + limit
        looked_at = 0
        with self._changed:
            while True:
                for event in self.events[looked_at:]:
                    if matches(event, name, since, fields) and (where is None or where(event)):
                        return event
                looked_at = len(self.events)
                left = end - time.monotonic()
                if self._closed or left <= 0:
                    break
                self._changed.wait(left)
        why = "ended without" if self._closed else f"no event within {limit:g} s:"
        wanted = " ".join([name, *(f"{key}={value}" for key, value in fields.items())])
        raise Unexpected(f"{self.name}: {why} {wanted}")

    def all(self, name, since=0.0, **fields):
        with self._changed:
            return [event for event in self.events if matches(event, name, since, fields)]

    def ready(self, limit=20.0):
        return self.wait("ready", limit)

    @property
    def id(self):
        return self.ready()["id"]

    @property
    def port(self):
        return int(self.ready()["listen"][0].rsplit(":", 1)[1])

    def first_frame(self, other, limit=20.0, since=0.0):
        return self.wait("media.first-frame", limit, since, member=other.id)

    def roster(self):
        """The ids of the members that are here now."""
        present = set()
        with self._changed:
            for event in self.events:
                if event["event"] == "member.joined":
                    present.add((event["channel"], event["member"]))
                elif event["event"] == "member.left":
                    present.discard((event["channel"], event["member"]))
        return present

    def peer_statistics(self, other, limit=3.0, since=None, channel=None):
        """The next statistics about another node; `at` is their time of arrival."""
        since = time.monotonic() if since is None else since

        def find(event):
            for peer in event["peers"]:
                if peer["member"] == other.id and channel in (None, peer["channel"]):
                    return peer
            return None

        event = self.wait("stats", limit, since, where=find)
        return {**find(event), "at": event["at"], "node": event["node"]}

    # Commands and ends

    def send(self, command, **fields):
        """Sends a command by name and fields, or a line as it stands; returns the time before."""
        at = time.monotonic()
        line = command if isinstance(command, bytes) else json.dumps({"do": command, **fields}).encode()
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()
        return at

    def signal(self, number):
        at = time.monotonic()
        self.process.send_signal(number)
        return at

    def stop_reading(self):
        """Stops reading its events until `close`."""
        self._reading.clear()

    def ended(self, limit):
        """The exit code once the process is gone."""
        try:
            code = self.process.wait(limit)
        except subprocess.TimeoutExpired:
            raise Unexpected(f"{self.name}: still there after {limit:g} s") from None
        self._reading.set()
        self._reader.join(5)
        return code

    def close(self):
        """Ends the process in any case."""
        self._reading.set()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
            try:
                self.process.wait(3)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._reader.join(5)
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        self.process.stdout.close()

    # Output files

    @property
    def errors(self):
        with open(self.errors_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    @property
    def is_running(self):
        return self.process.poll() is None

    def recording(self, other, ending, stream=None):
        """The path of the recording of another node's camera or other stream."""
        name = f"*-{other.id}.{ending}" if stream is None else f"*-{other.id}-{stream}.{ending}"
        found = glob.glob(os.path.join(self.folder, "record", name))
        if len(found) != 1:
            there = sorted(os.listdir(os.path.join(self.folder, "record")))
            raise Unexpected(f"{self.name}: no one .{ending} of {other.name} among {there}")
        return found[0]

    def last_words(self):
        """Diagnostics for a failed check."""
        lines = [f"{self.name}: {' '.join(self.command)}"]
        lines += [f"  stderr: {line}" for line in self.errors.splitlines()[-5:]]
        reported = [event for event in self.events if event["event"] != "stats"]
        lines += [f"  {brief(event)}" for event in reported[-12:]]
        lines += [f"  not JSON: {line!r}" for line in self.broken[:3]]
        return lines


def matches(event, name, since, fields):
    return (event["event"] == name and event["at"] >= since
            and all(event.get(key) == value for key, value in fields.items()))


def brief(event):
    left_out = ("key", "at", "role")
    return json.dumps({key: value for key, value in event.items() if key not in left_out})


def clean_environment(folder, more=None):
    """An environment without the user's identities, passphrases and devices."""
    kept = {key: value for key, value in os.environ.items() if key in ("PATH", "LANG", "TMPDIR")}
    kept.update(HOME=folder, XDG_DATA_HOME=os.path.join(folder, "xdg"), USER="lab")
    kept.update(more or {})
    return kept
