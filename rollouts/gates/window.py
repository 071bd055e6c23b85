"""A maintenance window for the remaining nodes is open, and stays open for as long as the plan asks.

Windows bind their nodes with or without this gate. The gate adds that a window must exist, so that a node without one
is not released at any time. It also begins no wave shortly before the window closes, since nodes in progress continue
(Z3). Released nodes that have not begun are held again when no window covers them any more
(`rollouts.queries.stage_windows`). Nobody is asked about a closed window: it opens by itself.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar

from rollouts.gates.base import Evidence, Gate, GateResult, When, WindowEvidence, passed, wait
from wording.durations import spell
from wording.lists import names
from wording.numbers import are, count

MOST = timedelta(days=7)  # as long as one window may be open
CLOSED, CLOSES_SOON = "closed", "closes-soon"
COMES_BY_ITSELF = frozenset({CLOSED, CLOSES_SOON})  # causes of a wait that ends with an opening that is known


@dataclass(frozen=True)
class Window(Gate):
    must_last: timedelta = timedelta(0)  # how long it must still be open when a wave goes

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
            return wait("The stage has no target left: there is nothing to open for.", cause="no-target")
        if windows is None:
            return wait("Which maintenance windows cover its nodes is not known: none is seen.", cause="unseen")
        if not windows:
            return passed("No node is left to go.", cause="none-left")
        measured: dict[str, Any] = {"needed_s": self.must_last.total_seconds()} if self.must_last else {}
        if bare := _nodes(one for one in windows if not one.sentence):
            return wait(says_bare(bare), cause="no-window", nodes=bare, measured=measured, is_final=True)
        under_way = [one for one in windows if one.is_open(now)]
        fit = [one for one in under_way if one.lasts(self.must_last, now)]
        if len(fit) < len(under_way):
            return self._too_little(next(one for one in under_way if one not in fit), measured, now=now)
        if not fit:
            return self._closed(windows, measured)
        ends = min(fit, key=lambda one: one.openings[0][1])
        open_, every = _nodes(fit), _nodes(windows)
        measured |= {"until": ends.openings[0][1].isoformat(), "may go": len(open_), "of": len(every)}
        others = "" if len(fit) == 1 == len(windows) else f" {_share(open_, every)} in one that is open."
        return passed(f"{ends.sentence}{others}", measured=measured)

    def why_not(self, one: WindowEvidence, *, now: datetime) -> str:
        """Returns why none of these nodes is released; empty if a window is open and stays open long enough."""
        if not one.sentence:
            return says_bare(one.nodes)
        if one.lasts(self.must_last, now):
            return ""
        return self._says_short(one) if one.is_open(now) else one.sentence

    def _says_short(self, one: WindowEvidence) -> str:
        return f"{one.sentence} {spell(self.must_last)} of it must be left when a wave goes."

    def _too_little(self, short: WindowEvidence, measured: dict[str, Any], *, now: datetime) -> GateResult:
        sentence = self._says_short(short).removesuffix(".")
        later = any(opens_at > now and closes_at - opens_at >= self.must_last for opens_at, closes_at in short.openings)
        if later:
            return wait(f"{sentence}: it waits for the next.", cause=CLOSES_SOON, nodes=short.nodes, measured=measured)
        never = f"{sentence}, and none to come is open for so long."
        return wait(never, cause="never", nodes=short.nodes, measured=measured, is_final=True)

    def _closed(self, windows: Sequence[WindowEvidence], measured: dict[str, Any]) -> GateResult:
        """Returns WAIT with the first opening that is long enough."""
        ahead = [
            (opens_at, one)
            for one in windows
            for opens_at, closes_at in one.openings
            if closes_at - opens_at >= self.must_last
        ]
        if not ahead:
            first = windows[0]
            too_short = f" None to come is open for {spell(self.must_last)}." if first.openings else ""
            sentence = f"{first.sentence}{too_short}"
            return wait(sentence, cause="never", nodes=first.nodes, measured=measured, is_final=True)
        opens_at, first = min(ahead, key=lambda each: each[0])
        measured |= {"opens": opens_at.isoformat()}
        is_next = opens_at == first.openings[0][0]
        longer = "" if is_next else f" It waits for one that is open for {spell(self.must_last)}."
        return wait(f"{first.sentence}{longer}", cause=CLOSED, nodes=first.nodes, measured=measured)


def comes_by_itself(gate: str, cause: str) -> bool:
    """Returns whether the gate's wait ends by itself, so that nobody is asked."""
    return gate == Window.key and cause in COMES_BY_ITSELF


def says_bare(nodes: Sequence[str]) -> str:
    return f"No maintenance window covers {names(nodes)}: make one of the pool or of the cluster."


def _nodes(windows: Iterable[WindowEvidence]) -> tuple[str, ...]:
    return tuple(name for one in windows for name in one.nodes)


def _share(open_: Sequence[str], every: Sequence[str]) -> str:
    return f"{len(open_)} of {count(len(every), 'node')} still to go {are(len(open_))}"
