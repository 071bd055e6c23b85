"""A maintenance window for the remaining nodes is open, and stays open for as long as the plan asks.

Windows bind their nodes with or without this gate. The gate adds that a window must exist, so that a node without one
is not released at any time. It also begins no wave shortly before the window closes, since nodes in progress continue
(Z3). Released nodes that have not begun are held again when no window covers them any more
(`rollouts.queries.stage_windows`). Nobody is asked about a closed window: it opens by itself.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar

from rollouts.gates.base import Evidence, Gate, GateResult, Items, When, WindowEvidence
from rollouts.gates.results import OVERRIDE, no_target, passed, subject, wait
from wording.durations import spell
from wording.lists import names
from wording.numbers import count
from wording.reports import EvidenceItem

MOST = timedelta(days=7)  # as long as one window may be open
CLOSED, CLOSES_SOON = "closed", "closes-soon"
MAKE_WINDOW = "Create a maintenance window for the pool or the cluster."
COMES_BY_ITSELF = frozenset({CLOSED, CLOSES_SOON})  # causes of a wait that ends with an opening that is known


@dataclass(frozen=True)
class Window(Gate):
    must_last: timedelta = timedelta(0)  # how long it must stay open after a wave starts

    key: ClassVar[str] = "window"
    title: ClassVar[str] = "Maintenance window"
    when: ClassVar[When] = When.WAVE

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.must_last > MOST:
            raise ValueError("must_last is at most 7 days: no window is open for longer.")

    def evaluate(self, evidence: Evidence, *, now: datetime) -> GateResult:
        """Returns the result. Nodes with closed windows do not block others; they are just not released."""
        windows = evidence.windows
        if not evidence.counted:
            return no_target()
        if windows is None:
            return wait("The maintenance windows of the nodes are unknown", "No node is seen.", cause="unseen")
        if not windows:
            return passed("No node is left to release", cause="none-left")
        needed = (EvidenceItem("Must stay open", self.must_last.total_seconds(), "s"),) if self.must_last else ()
        if bare := _nodes(one for one in windows if not one.sentence):
            title = f"No maintenance window covers {subject(bare)}"
            return wait(title, cause="no-window", nodes=bare, evidence=needed, steps=(MAKE_WINDOW,), is_final=True)
        in_progress = [one for one in windows if one.is_open(now)]
        fit = [one for one in in_progress if one.lasts(self.must_last, now)]
        if len(fit) < len(in_progress):
            return self._too_little(next(one for one in in_progress if one not in fit), needed, now=now)
        if not fit:
            return self._closed(windows, needed)
        ends = min(fit, key=lambda one: one.openings[0][1])
        open_, every = _nodes(fit), _nodes(windows)
        items = (
            *needed,
            EvidenceItem("Until", ends.openings[0][1].isoformat(), "UTC"),
            EvidenceItem("Nodes in an open window", len(open_)),
            EvidenceItem("Nodes left", len(every)),
        )
        title = f"A maintenance window is open for {_share(open_, every)}"
        return passed(title, ends.sentence, evidence=items)

    def why_not(self, one: WindowEvidence, *, now: datetime) -> str:
        """Returns why none of these nodes is released; empty if a window is open and stays open long enough."""
        if not one.sentence:
            return no_window_text(one.nodes)
        if one.lasts(self.must_last, now):
            return ""
        return self._short_window_text(one) if one.is_open(now) else one.sentence

    def _short_window_text(self, one: WindowEvidence) -> str:
        return f"{one.sentence} At least {spell(self.must_last)} must remain when a wave is released."

    def _too_little(self, short: WindowEvidence, needed: Items, *, now: datetime) -> GateResult:
        title = f"The maintenance window closes in less than {spell(self.must_last)}"
        later = any(opens_at > now and closes_at - opens_at >= self.must_last for opens_at, closes_at in short.openings)
        if later:
            return wait(title, short.sentence, cause=CLOSES_SOON, nodes=short.nodes, evidence=needed)
        return self._never(short, needed)

    def _closed(self, windows: Sequence[WindowEvidence], needed: Items) -> GateResult:
        """Returns WAIT with the first opening that is long enough."""
        ahead = [
            (opens_at, one)
            for one in windows
            for opens_at, closes_at in one.openings
            if closes_at - opens_at >= self.must_last
        ]
        if not ahead:
            return self._never(windows[0], needed)
        opens_at, first = min(ahead, key=lambda opening: opening[0])
        items = (*needed, EvidenceItem("Opens", opens_at.isoformat(), "UTC"))
        is_next = opens_at == first.openings[0][0]
        title = "The maintenance window is closed" if is_next else "The next maintenance window is too short"
        return wait(title, first.sentence, cause=CLOSED, nodes=first.nodes, evidence=items)

    def _never(self, first: WindowEvidence, needed: Items) -> GateResult:
        length = f" for {spell(self.must_last)}" if first.openings else ""
        title = f"No later maintenance window is open{length}"
        steps = (MAKE_WINDOW, *OVERRIDE)
        nodes = first.nodes
        return wait(title, first.sentence, cause="never", nodes=nodes, evidence=needed, steps=steps, is_final=True)


def comes_by_itself(gate: str, cause: str) -> bool:
    """Returns whether the gate's wait ends by itself, so that nobody is asked."""
    return gate == Window.key and cause in COMES_BY_ITSELF


def no_window_text(nodes: Sequence[str]) -> str:
    return f"No maintenance window covers {names(nodes)}. {MAKE_WINDOW}"


def _nodes(windows: Iterable[WindowEvidence]) -> tuple[str, ...]:
    return tuple(name for one in windows for name in one.nodes)


def _share(open_: Sequence[str], every: Sequence[str]) -> str:
    return count(len(open_), "node") if len(open_) == len(every) else f"{len(open_)} of {count(len(every), 'node')}"
