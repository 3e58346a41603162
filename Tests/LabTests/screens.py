"""When each picture came to a node: read off its recordings while it writes them.

A recording has the times at which pictures were captured, and a node's own statistics count what
they take for a freeze; how long somebody looked at the same picture is seen only from outside.
"""

import glob
import os
import struct
import threading
import time

# A picture's time is right to this and to what the recording thread waits for its turn.
_INTERVAL = 0.004
_LOOK_FOR_FILES = 0.1
_HEADER, _FRAME_HEADER = 32, 12


class Screens:
    """Watches what nodes that were made with `record=True` get of each other, until `stop`."""

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
        """For how long at most `one` saw the same picture of `other`, from `since` on; of gaps
        that begin before `until` all of it counts, also of one that still goes on."""
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
        """Notes the pictures that are there since the last look."""
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
