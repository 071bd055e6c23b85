"""The expected end of a plan: its waves and soaks one after another, with approvals and closed windows. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from gpu.upgrade_controller import LOOKS_EVERY
from rollouts.commands.duration import StageTime
from rollouts.windows import Interval


@dataclass(frozen=True)
class Timeline:
    in_waves: timedelta
    for_operator: timedelta  # until it looks, where the times of nodes are defaults
    soaks: timedelta
    for_windows: timedelta | None  # None: a window never opens again
    for_approvals: timedelta | None  # None: no past approval was measured
    ends_at: datetime | None  # None: a window never opens again


class OpenTimes:
    """The times at which a stage may release nodes. `intervals` of None: always."""

    def __init__(self, intervals: Iterator[Interval] | None = None) -> None:
        self._ahead = intervals
        self._current: Interval | None = None

    def next_at(self, at: datetime) -> datetime | None:
        """Returns the first open instant from `at` on; None if there is none. Ask in order of time."""
        if self._ahead is None:
            return at
        while self._current is None or self._current.closes_at <= at:
            self._current = next(self._ahead, None)
            if self._current is None:
                return None
        return max(at, self._current.opens_at)


def timeline_of(
    stages: Sequence[tuple[StageTime, OpenTimes]],
    *,
    approval_wait: timedelta | None,
    now: datetime,
    is_slow: bool = False,
) -> Timeline:
    """Returns the timeline. `approval_wait` is for each stage that is still to be approved; None counts as zero."""
    at: datetime | None = now
    in_waves = for_operator = for_windows = soaks = approvals = timedelta()
    for stage, times in stages:
        wave = stage.a_wave.slow if is_slow else stage.a_wave.typical
        looks = timedelta() if stage.a_wave.measured else LOOKS_EVERY
        asked = approval_wait if stage.is_asked and approval_wait else timedelta()
        in_waves, for_operator = in_waves + stage.waves * wave, for_operator + stage.waves * looks
        soaks, approvals = soaks + stage.soak, approvals + asked
        if at is not None:
            at += asked
        for _ in range(stage.waves):
            opens_at = None if at is None else times.next_at(at)
            if at is None or opens_at is None:
                at = None
                break
            for_windows += opens_at - at
            at = opens_at + wave + looks
        if at is not None:
            at += stage.soak
    is_asked = any(stage.is_asked for stage, _ in stages)
    return Timeline(
        in_waves=in_waves,
        for_operator=for_operator,
        soaks=soaks,
        for_windows=None if at is None else for_windows,
        for_approvals=None if is_asked and approval_wait is None else approvals,
        ends_at=at,
    )
