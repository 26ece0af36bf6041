"""Token buckets. Pure; times in seconds of a clock that only goes forward."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bucket:
    """A token bucket: `level` tokens at the moment `at_s`."""

    level: float
    at_s: float

    def at(self, now_s: float, *, rate: float, size: float) -> Bucket:
        """Return the bucket of later: it fills by `rate` tokens a second up to `size`."""
        return Bucket(min(size, self.level + max(0.0, now_s - self.at_s) * rate), now_s)

    def less_one(self) -> Bucket:
        """Return the bucket after a token was taken."""
        return Bucket(self.level - 1, self.at_s)

    def wait_s(self, *, rate: float) -> float:
        """Return in how many seconds there is a whole token."""
        return max(0.0, (1 - self.level) / rate)
