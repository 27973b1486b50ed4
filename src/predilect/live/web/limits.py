"""How often somebody may ask: in memory of this process, nothing of it is kept."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable

from predilect.live.given import Refused

_MOST_BUCKETS = 50_000


class Rate:
    """So many a second, and a burst; each key has a bucket of its own."""

    def __init__(self, per_second: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.per_second, self.burst, self._clock = per_second, burst, clock
        self._buckets: dict[Hashable, tuple[float, float]] = {}  # when, and what was left then
        self._lock = threading.Lock()

    def take(self, key: Hashable) -> None:
        """Count one; Refused (429) if that is too many."""
        now = self._clock()
        with self._lock:
            when, left = self._buckets.get(key, (now, self.burst))
            left = min(self.burst, left + (now - when) * self.per_second)
            if left < 1.0:
                self._buckets[key] = (now, left)
                raise Refused("too many requests. Wait a moment", 429)
            if len(self._buckets) >= _MOST_BUCKETS:  # those that are full again are as good as new
                self._buckets = {
                    one: (then, rest) for one, (then, rest) in self._buckets.items()
                    if rest + (now - then) * self.per_second < self.burst
                }  # fmt: skip
            self._buckets[key] = (now, left - 1.0)
