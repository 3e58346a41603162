"""A `muster rendezvous --json` process: it reports its addresses, then serves until it is ended."""

import json
import os
import select
import signal
import subprocess
import time

from node import Unexpected, clean_environment


class Rendezvous:
    """Starts on a host and is ready once constructed; a check's context treats it like a node."""

    def __init__(self, muster, name, address, folder, host):
        self.name = name
        self.folder = folder
        # Lines that are not JSON, as a node has them; the only line of a rendezvous is read below.
        self.broken = []
        self.command = ["ip", "netns", "exec", host.namespace,
                        muster, "rendezvous", "--listen", address, "--json"]
        os.makedirs(folder, exist_ok=True)
        self._errors_path = os.path.join(folder, "stderr")
        with open(self._errors_path, "wb") as errors:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors,
                env=clean_environment(folder), cwd=folder)
        try:
            self._expect_ready(address)
        except Unexpected:
            self.close()
            raise

    def _expect_ready(self, address):
        said = b""
        if select.select([self.process.stdout], [], [], 5)[0]:
            said = self.process.stdout.readline()
        try:
            ready = json.loads(said)
            is_right = ready["event"] == "ready" and ready["listen"] == [address]
        except (ValueError, KeyError, TypeError):
            is_right = False
        if not is_right:
            raise Unexpected(f"{self.name} says {said!r}, and {self.errors[-300:]!r}")

    def signal(self, number):
        at = time.monotonic()
        self.process.send_signal(number)
        return at

    def ended(self, limit):
        """The exit code once the process is gone."""
        try:
            return self.process.wait(limit)
        except subprocess.TimeoutExpired:
            raise Unexpected(f"{self.name}: still there after {limit:g} s") from None

    def close(self):
        """Ends the process in any case."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(3)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process.stdout.close()

    @property
    def errors(self):
        with open(self._errors_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def last_words(self):
        """Diagnostics for a failed check."""
        lines = [f"{self.name}: {' '.join(self.command)}"]
        return lines + [f"  stderr: {line}" for line in self.errors.splitlines()[-5:]]
