"""The maintenance windows and freezes of seven days that bind the remaining nodes of a stage, as rows of a strip."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import islice, takewhile

from rollouts.gates.window import Window
from rollouts.lifecycle import PLAN_FINAL, StageState, TargetState
from rollouts.models import GateAnswer, Plan, Stage
from rollouts.queries.restraints import Restraint, Restraints, pools_of, restraints_of
from rollouts.queries.strip_values import StripRow, StripSpan
from rollouts.windows import Interval, union
from wording.durations import spell
from wording.instants import moment

AHEAD = timedelta(days=7)
MOST_OPENINGS = 100  # of a row
RELEASES_IN = (StageState.OPENING, StageState.PROMOTING)


def window_rows(
    plan: Plan, stage: Stage, gate: Window, answer: GateAnswer, *, now: datetime
) -> tuple[str, Sequence[StripRow], StripSpan | None]:
    """Returns the query in words, the rows and their time. A stage that releases no more has its last answer alone.

    Nine queries at most.
    """
    query = "Maintenance windows and freezes of the remaining nodes"
    if stage.state not in RELEASES_IN or plan.state in PLAN_FINAL:
        return query, [StripRow("Result", answer.sentence)], None
    span = StripSpan(now, now + AHEAD)
    uids = list(stage.targets.filter(state=TargetState.HELD).values_list("node_uid", flat=True))
    found = list(_rows(restraints_of(plan, now=now), uids, span, plan.cluster_id))
    if gate.must_last:
        found.append(StripRow("Must stay open for", spell(gate.must_last)))
    return query, found, span


def _rows(restraints: Restraints, uids: Sequence[str], span: StripSpan, cluster_id: int) -> Iterator[StripRow]:
    windows = restraints.windows
    binding = [*restraints.of_pools, *(windows.pools if windows else ())]
    pools = frozenset[int]().union(*pools_of(cluster_id, uids, binding).values()) if binding else frozenset()
    places = [its for place, its in sorted(windows.by_place.items()) if place in {0, *pools}] if windows else []
    for its in places:
        ahead = union([window.schedule for window in its], after=span.begin)
        yield _openings(its[0].place, ahead, span)
    if not places:
        yield StripRow("Maintenance windows", "none covers these nodes")
    frozen = [*restraints.of_all, *(one for pool in sorted(pools) for one in restraints.of_pools.get(pool, ()))]
    yield from (_freeze(one, span) for one in frozen)


def _openings(place: str, ahead: Iterator[Interval], span: StripSpan) -> StripRow:
    first = next(ahead, None)
    if first is None:
        return StripRow(place, "opens no more")
    now = span.begin
    text = f"open until {moment(first.closes_at, now=now)}" if first.opens_at <= now else _opens_text(first, now=now)
    soon = takewhile(lambda one: one.opens_at < span.end, (first, *islice(ahead, MOST_OPENINGS)))
    bars = tuple(span.bar(one.opens_at, one.closes_at, "ok", _length_text(one, now=now)) for one in soon)
    return StripRow(place, text, bars)


def _opens_text(one: Interval, *, now: datetime) -> str:
    return f"opens {moment(one.opens_at, now=now)}"


def _length_text(one: Interval, *, now: datetime) -> str:
    return f"{moment(one.opens_at, now=now)} for {spell(one.closes_at - one.opens_at)}"


def _freeze(one: Restraint, span: StripSpan) -> StripRow:
    bar = span.bar(span.begin, one.ends_at or span.end, "bad", one.sentence)
    return StripRow("Stop" if one.is_stop else "Freeze", one.sentence, (bar,))
