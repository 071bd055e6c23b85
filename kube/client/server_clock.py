"""The clock skew of a server, estimated from the `Date` headers of its answers (RFC 9110 6.6.1; Go's HTTP server
sets it).

A date has whole seconds and lies between request and answer, so each answer gives a range, and several narrow it.
Only the API server's clock is known here; clocks of kubelets and controllers may differ.
"""

import threading
from datetime import UTC
from email.utils import parsedate_to_datetime

SLOWEST_S = 5.0  # slower answers are too imprecise


class ServerClock:
    """An estimate of a server's clock skew. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._range: tuple[float, float] | None = None

    @property
    def skew_s(self) -> float | None:
        """Returns the seconds that the server is ahead; negative: behind; 0: perhaps equal. None: no date received."""
        if self._range is None:
            return None
        low, high = self._range
        return 0.0 if low <= 0 <= high else round((low + high) / 2, 1)

    def note(self, date: str | None, *, sent_at: float, answered_at: float) -> None:
        """Adds a measurement. `sent_at` and `answered_at` are by our clock, in seconds since 1970."""
        reported_s = _seconds(date)
        if reported_s is None or not 0 <= answered_at - sent_at <= SLOWEST_S:
            return
        low, high = reported_s - answered_at, reported_s + 1 - sent_at
        with self._lock:
            if self._range is not None and self._range[0] <= high and low <= self._range[1]:
                low, high = max(low, self._range[0]), min(high, self._range[1])
            self._range = low, high  # a range that does not overlap means that a clock was set


def _seconds(date: str | None) -> float | None:
    try:
        moment = parsedate_to_datetime(date or "")
    except Exception:  # noqa: BLE001 - of any class: an unreadable date is ignored
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
