"""When Quarterdeck is behind a cluster, and how it says so. Pure.

The lag is how long the oldest change of a flush had waited, from the moment its bytes were read to the moment its row
was written. A burst may be late once; behind is who stays late.
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
        """With the lag of one more flush."""
        if ms <= LATE_MS:
            return Lag(ms)
        # What is 12 s late now was due 12 s ago.
        late_since = self.behind_since or self.late_since or now - timedelta(milliseconds=ms - LATE_MS)
        return Lag(ms, late_since, late_since if now - late_since >= LATE_FOR else None)


def sentence(name: str, *, behind_since: datetime | None, lag_ms: int | None = None) -> str:
    """Blank: the cluster called `name` is kept up with. `lag_ms` None: how late is not said, as it only counts on."""
    if behind_since is None:
        return ""
    late = "late" if lag_ms is None else f"{lag_ms / 1000:.1f} s late"
    return (
        f"Quarterdeck cannot keep up with {name} since {to_the_second(behind_since)}: changes are shown {late}. Its "
        "worker has too little CPU, or the database is slow."
    )
