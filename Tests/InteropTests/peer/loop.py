"""An event loop on one thread: timers and readable files."""

import heapq
import itertools
import random
import select
import time


class Loop:
    def __init__(self):
        self._timers = []
        self._numbers = itertools.count()
        self._readers = {}
        self._after_each = []
        self.is_stopped = False

    def after(self, delay, action):
        """Calls `action` once, `delay` seconds from now."""
        heapq.heappush(self._timers, (time.monotonic() + delay, next(self._numbers), action))

    def every(self, interval, action, jitter=0.0):
        """Calls `action` now and then periodically; `jitter` is a fraction of the interval."""
        def run():
            action()
            self.after(interval * random.uniform(1 - jitter, 1 + jitter), run)
        self.after(0, run)

    def when_readable(self, file, action):
        self._readers[file] = action

    def forget(self, file):
        self._readers.pop(file, None)

    def after_each_step(self, action):
        self._after_each.append(action)

    def run(self):
        while not self.is_stopped:
            self.step()

    def step(self, longest=0.25):
        wait = longest
        if self._timers:
            wait = min(wait, max(0.0, self._timers[0][0] - time.monotonic()))
        for file in select.select(list(self._readers), [], [], wait)[0]:
            if file in self._readers:
                self._readers[file]()
        now = time.monotonic()
        while self._timers and self._timers[0][0] <= now:
            heapq.heappop(self._timers)[2]()
        for action in self._after_each:
            action()
