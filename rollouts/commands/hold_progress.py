"""The progress of holding or releasing nodes, and the expected remaining time. Pure."""

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
    left: timedelta | None  # None: too few of them were done lately to say
    done_is: str = "held"

    @property
    def left_s(self) -> float | None:
        return None if self.left is None else self.left.total_seconds()

    @property
    def sentence(self) -> str:
        """Returns text such as "1240 of 5000 nodes held; the rest takes about 2 min at the pace of the last minute"."""
        so_far = f"{self.done} of {count(self.total, 'node')} {self.done_is}"
        if self.left is None:
            return so_far
        return f"{so_far}; about {spell(self.left)} remaining at the pace of the last minute"


def holding_of(placed: Collection[datetime | None], *, now: datetime) -> HoldProgress | None:
    """Returns the progress of holding; None if complete. `placed` are the times at which each label was read back."""
    return _progress(placed, "held", now=now)


def releasing_of(freed: Collection[datetime | None], *, now: datetime) -> HoldProgress | None:
    """Returns the progress of releasing; None if complete. `freed` are the times at which each label was gone."""
    return _progress(freed, "let go", now=now)


def _progress(done_at: Collection[datetime | None], done_is: str, *, now: datetime) -> HoldProgress | None:
    times = [at for at in done_at if at is not None]
    missing = len(done_at) - len(times)
    if not missing:
        return None
    lately = [at for at in times if timedelta(0) <= now - at <= LATELY]
    if len(lately) < FEWEST:
        return HoldProgress(len(times), len(done_at), None, done_is)
    each = max(now - min(lately), timedelta(seconds=1)) / len(lately)
    left = timedelta(seconds=max(1, round((missing * each).total_seconds())))
    return HoldProgress(len(times), len(done_at), left, done_is)
