"""Arrival times of frames at a node, read off its recordings while it writes them.

A recording has the capture times of frames, and a node's own statistics count only freezes as the
node defines them; the time for which a viewer saw the same frame shows only from outside.
"""

import glob
import os
import struct
import threading
import time

# The error of an arrival time is this interval plus the delay of the recording thread, in seconds.
_INTERVAL = 0.004
_LOOK_FOR_FILES = 0.1
_HEADER, _FRAME_HEADER = 32, 12


class Screens:
    """Watches the recordings of nodes that were made with `record=True`, until `stop`."""

    def __init__(self, *nodes):
        self._pairs = {(one.name, other.name): _Screen(one, other)
                       for one in nodes for other in nodes if one is not other}
        self._running = True
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self):
        if self._running:
            self._running = False
            self._thread.join()
            for screen in self._pairs.values():
                screen.close()

    def gap(self, one, other, since, until):
        """The longest time for which `one` saw the same frame of `other`, from `since` on. A gap
        that begins before `until` counts in full, even while it lasts.
        """
        times = list(self._pairs[one.name, other.name].times)
        seen = [since, *(at for at in times if since < at <= until)]
        after = next((at for at in times if at > until), time.monotonic())
        return max(later - at for at, later in zip(seen, [*seen[1:], after]))

    def _run(self):
        look_at = 0.0
        while self._running:
            now = time.monotonic()
            for screen in self._pairs.values():
                if now >= look_at:
                    screen.find()
                screen.read()
            if now >= look_at:
                look_at = now + _LOOK_FOR_FILES
            time.sleep(_INTERVAL)


class _Screen:
    def __init__(self, one, other):
        self._pattern = os.path.join(
            glob.escape(os.path.join(one.folder, "record")), f"*-{other.id}*.ivf")
        self._files = {}
        self.times = []

    def find(self):
        for path in glob.glob(self._pattern):
            if path not in self._files:
                self._files[path] = [os.open(path, os.O_RDONLY | os.O_CLOEXEC), _HEADER]

    def read(self):
        """Notes the frames that arrived since the last look."""
        for file in self._files.values():
            descriptor, offset = file
            size = os.fstat(descriptor).st_size
            while offset + _FRAME_HEADER <= size:
                length, = struct.unpack("<I", os.pread(descriptor, 4, offset))
                if offset + _FRAME_HEADER + length > size:
                    break
                offset += _FRAME_HEADER + length
                self.times.append(time.monotonic())
            file[1] = offset

    def close(self):
        for descriptor, _ in self._files.values():
            os.close(descriptor)
        self._files = {}
