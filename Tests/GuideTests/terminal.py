"""A terminal on a machine, as a person has one: tmux draws it, and nobody looks at it."""

import os
import re
import subprocess
import time

COLUMNS, ROWS = 80, 40


class Terminal:
    """A shell behind a terminal. `command` starts it, on a machine whose profile makes the shell
    note each command's exit code in the file `codes`."""

    def __init__(self, socket, name, command, codes):
        self._tmux = ["tmux", "-S", socket, "-f", os.devnull]
        self._name, self._codes = name, codes
        self._told = 0
        self._call("new-session", "-d", "-s", name, "-x", str(COLUMNS), "-y", str(ROWS), *command)
        self.wait_for_prompt(60)

    def type(self, text):
        self._call("send-keys", "-t", self._name, "-l", text)

    def press(self, key):
        self._call("send-keys", "-t", self._name, key)

    def clear(self):
        """Forgets what it showed so far; for an idle shell."""
        self.press("C-l")
        time.sleep(0.2)
        self._call("clear-history", "-t", self._name)

    def screen(self):
        """The lines that it shows, and those that have moved out at its top."""
        shown = self._call("capture-pane", "-p", "-J", "-S", "-", "-t", self._name)
        return shown.splitlines()

    def codes(self):
        """The exit codes of all commands so far."""
        try:
            with open(self._codes, encoding="ascii") as file:
                return [int(line) for line in file.read().split()]
        except FileNotFoundError:
            return []

    def wait_for_prompt(self, limit):
        """Waits until the shell asks for a command again; returns the last one's exit code, or None
        if it does not ask within the limit."""
        end = time.monotonic() + limit
        while len(codes := self.codes()) <= self._told:
            if time.monotonic() > end:
                return None
            time.sleep(0.05)
        self._told = len(codes)
        return codes[-1]

    @property
    def is_busy(self):
        """Whether the last command has not ended."""
        return len(self.codes()) <= self._told

    def close(self):
        subprocess.run([*self._tmux, "kill-session", "-t", self._name], check=False,
                       capture_output=True)

    def _call(self, *arguments):
        done = subprocess.run(
            [*self._tmux, *arguments], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"tmux {arguments[0]}: {done.stderr.strip()}")
        return done.stdout


def commands(lines):
    """A block's lines, put together to whole commands."""
    whole, part = [], []
    for line in lines:
        part.append(line)
        text = "\n".join(part)
        read = subprocess.run(["bash", "-n"], input=text + "\n", capture_output=True, text=True,
                              check=False)
        if not (read.returncode or read.stderr or re.search(r"\\$", text)):
            if text.strip() and not text.lstrip().startswith("#"):
                whole.append(part)
            part = []
    return whole
