"""How far a plan is with holding its nodes, and how long the rest takes at its pace. Pure."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from wording.durations import spell
from wording.numbers import count

LATELY = timedelta(minutes=1)
FEWEST = 5  # labels whose times say anything of the pace


@dataclass(frozen=True)
class HoldProgress:
    done: int
    total: int
    left: timedelta | None  # None: too few were held lately to say

    @property
    def left_s(self) -> float | None:
        return None if self.left is None else self.left.total_seconds()

    @property
    def sentence(self) -> str:
        """ "1240 of 5000 nodes held; the rest takes about 2 min at the pace of the last minute"."""
        held = f"{self.done} of {count(self.total, 'node')} held"
        if self.left is None:
            return held
        return f"{held}; the rest takes about {spell(self.left)} at the pace of the last minute"


def holding_of(placed: Collection[datetime | None], *, now: datetime) -> HoldProgress | None:
    """`placed`: of each node that is to be held, when its label was read back. None: all are, or there are none."""
    times = [at for at in placed if at is not None]
    missing = len(placed) - len(times)
    if not missing:
        return None
    lately = [at for at in times if timedelta(0) <= now - at <= LATELY]
    if len(lately) < FEWEST:
        return HoldProgress(len(times), len(placed), None)
    each = max(now - min(lately), timedelta(seconds=1)) / len(lately)
    return HoldProgress(len(times), len(placed), timedelta(seconds=max(1, round((missing * each).total_seconds()))))
