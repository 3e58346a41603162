"""Commands on terminals, with what they show and what is typed there."""

import os
import pty
import select
import signal
import time

from node import clean_environment

# Of answers at a terminal, in seconds; they take a fraction of one.
_PATIENCE = 30


class Terminal:
    """A command on a terminal of its own."""

    def __init__(self, t, arguments, variables=None):
        self._t = t
        self.text = ""
        self._process, self._file = pty.fork()
        if self._process == 0:
            try:
                environment = clean_environment(
                    t.folder, {"TERM": "xterm", **(variables or {})})
                os.execve(arguments[0], arguments, environment)
            finally:
                os._exit(127)  # not a second run of the checks
        t.later(self._close)

    def _close(self):
        if self._process:
            os.kill(self._process, signal.SIGKILL)
            self._reap()

    def _reap(self):
        os.waitpid(self._process, 0)
        self._process = 0
        os.close(self._file)

    def _read(self, seconds):
        if not select.select([self._file], [], [], seconds)[0]:
            return True
        try:
            self.text += os.read(self._file, 4096).decode(errors="replace")
            return True
        except OSError:  # the other end is closed
            return False

    def shows(self, text):
        end = time.monotonic() + _PATIENCE
        while text not in self.text:
            goes_on = self._read(0.1)
            self._t.require(goes_on and time.monotonic() < end,
                            f"the terminal does not show {text!r}, but {self.text!r}")

    def types(self, text):
        os.write(self._file, text.encode())

    def ends(self):
        end = time.monotonic() + _PATIENCE
        while self._read(0.1):
            self._t.require(time.monotonic() < end, f"it does not end: {self.text[-400:]!r}")
        self._reap()
