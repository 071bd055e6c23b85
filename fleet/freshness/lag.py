"""The lag of observation behind a cluster, with its messages. Pure.

The lag is the wait of a flush's oldest change, from receiving its bytes to writing its row. A burst may cause one
late flush; a cluster is behind only after staying late.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from wording.instants import to_the_second

LATE_MS = 2000
LATE_FOR = timedelta(seconds=10)


@dataclass(frozen=True)
class Lag:
    ms: int = 0
    late_since: datetime | None = None
    behind_since: datetime | None = None

    @property
    def is_behind(self) -> bool:
        return self.behind_since is not None

    def after(self, ms: int, *, now: datetime) -> "Lag":
        """Returns the state after one more flush."""
        if ms <= LATE_MS:
            return Lag(ms)
        # A change that is 12 s late was due 12 s ago.
        late_since = self.behind_since or self.late_since or now - timedelta(milliseconds=ms - LATE_MS)
        return Lag(ms, late_since, late_since if now - late_since >= LATE_FOR else None)


def sentence(name: str, *, behind_since: datetime | None, lag_ms: int | None = None) -> str:
    """Returns the message. Blank: not behind. `lag_ms` None leaves out the current lag."""
    if behind_since is None:
        return ""
    late = "late" if lag_ms is None else f"{lag_ms / 1000:.1f} s late"
    return (
        f"Quarterdeck cannot keep up with {name} since {to_the_second(behind_since)}: changes are shown {late}. Its "
        "worker has too little CPU, or the database is slow."
    )
