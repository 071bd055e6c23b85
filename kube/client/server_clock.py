"""How far a server's clock is from ours, by the `Date` of its answers (RFC 9110 6.6.1; Go's HTTP server sets it).

A date has whole seconds and was written between our question and its answer: each answer gives a range, several narrow
it down. The clocks of kubelets and controllers may differ yet again: only the API server's is known here.
"""

import threading
from datetime import UTC
from email.utils import parsedate_to_datetime

SLOWEST_S = 5.0  # an answer that took longer says too little


class ServerClock:
    """Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._range: tuple[float, float] | None = None

    @property
    def skew_s(self) -> float | None:
        """Seconds that it is ahead of ours, below zero behind; 0 where it may well be the same. None: it never said."""
        if self._range is None:
            return None
        low, high = self._range
        return 0.0 if low <= 0 <= high else round((low + high) / 2, 1)

    def note(self, date: str | None, *, asked_at: float, answered_at: float) -> None:
        """The moments are of our own clock, in seconds since 1970."""
        told = _seconds(date)
        if told is None or not 0 <= answered_at - asked_at <= SLOWEST_S:
            return
        low, high = told - answered_at, told + 1 - asked_at
        with self._lock:
            if self._range is not None and self._range[0] <= high and low <= self._range[1]:
                low, high = max(low, self._range[0]), min(high, self._range[1])
            self._range = low, high  # one that does not fit the others: a clock was set


def _seconds(date: str | None) -> float | None:
    try:
        moment = parsedate_to_datetime(date or "")
    except Exception:  # noqa: BLE001 - of whatever class: a date that cannot be read says nothing
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
