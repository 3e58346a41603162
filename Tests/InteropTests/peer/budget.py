"""Token buckets: a burst, then a rate per second."""

import time


class Budget:
    def __init__(self, burst, rate):
        self._burst, self._rate = burst, rate
        self._left = burst
        self._at = time.monotonic()

    def take(self, amount=1):
        """Takes the amount and returns True, or returns False if less is left."""
        now = time.monotonic()
        self._left = min(self._burst, self._left + (now - self._at) * self._rate)
        self._at = now
        if self._left < amount:
            return False
        self._left -= amount
        return True
