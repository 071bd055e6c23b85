"""The board of a plan: a column per stage with gates, waves and progress."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from edges.digests import digest
from rollouts.gates.base import NEVER_OVERRIDDEN, Answer, Gate, When
from rollouts.gates.failure_budget import FailureBudget
from rollouts.gates.shared_waits import SharedWait, shared_waits
from rollouts.gates.soak import UNTIL, Soak
from rollouts.lifecycle import BEGUN, IN_FLIGHT, PlanState, StageState, TargetState
from rollouts.models import GateAnswer, GateOverride, Stage, StageKind, Target, Wave
from rollouts.models.target import Shown
from rollouts.node_order.node_selection import AtOnce
from rollouts.queries.gate_strips import DRAWN
from rollouts.queries.plan_view import StageOnPage, rank
from rollouts.queries.remedies import Remedy, remedies
from wording.durations import spell
from wording.lists import names

PAST = {"pass": "passed", "wait": "waited", "fail": "failed"}
# Gates of other times are asked in every state in which a stage is.
ASKED_IN = {When.ENTRY: {StageState.OPENING}, When.WAVE: {StageState.OPENING, StageState.PROMOTING}}
TRIED_AGAIN_IN = {StageState.PROMOTING, StageState.SOAKING, StageState.HALTED}
MOST_TARGETS = 60  # a stage; the rest are counted
ENDED = ((str(TargetState.CHANGED), "done"), (str(Shown.BACK), "back"))  # as a wave that is folded calls them
DONE = {state for state, _ in ENDED}
EXCLUDABLE = {TargetState.HELD, Shown.NOT_HELD, TargetState.FAILED}


@dataclass(frozen=True)
class GateLine:
    gate: Gate
    answer: GateAnswer | None
    soak_until: datetime | None = None
    is_over: bool = False  # no longer evaluated: the last result is shown with its time
    remark: str = ""  # addition to its sentence
    may_be_overridden: bool = False  # it blocks its stage; the command decides whether an override is allowed
    overrides: Sequence[GateOverride] = ()  # overrides, the newest first; permanent
    remedies: Sequence[Remedy] = ()  # actions that end the wait of a gate without evidence
    as_of: datetime | None = None  # its cluster is not observed: result and time are from then

    @property
    def word(self) -> str:
        if self.answer is None:
            return "was not asked" if self.is_over else "not asked yet"
        return PAST[self.answer.answer] if self.is_over else self.answer.answer

    @property
    def may_share(self) -> bool:
        """Returns whether the line may be part of a group: it waits, and a person has nothing to decide about it."""
        is_wait = self.answer is not None and self.answer.answer == Answer.WAIT and not self.is_over
        return is_wait and not (self.gate.advisory or self.remark or self.remedies or self.overrides)

    @property
    def has_strip(self) -> bool:
        """Returns whether `gate_strips` draws the gate."""
        return self.answer is not None and isinstance(self.gate, DRAWN)

    @property
    def has_plot(self) -> bool:
        """Returns whether `gate_plots` draws the gate once a node has changed."""
        return self.gate.when is When.THROUGH and not isinstance(self.gate, DRAWN)

    @property
    def place(self) -> tuple[bool, tuple[int, bool]]:
        """Returns the sort key: failing gates first, unevaluated ones last."""
        answer = self.answer.answer if self.answer else ""
        return self.is_over and answer != "fail", rank(answer, self.gate.key)

    @property
    def options(self) -> str:
        of_all = {field.name: field.default for field in fields(Gate)}
        set_here = {
            name: value for name, value in vars(self.gate).items() if name not in of_all or value != of_all[name]
        }
        return ", ".join(f"{name.replace('_', ' ')} {_option(value)}" for name, value in set_here.items())


def _option(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{number} of {name}" for name, number in sorted(value.items())) or "none"
    return spell(value) if isinstance(value, timedelta) else str(value)


@dataclass(frozen=True)
class WaveGroup:
    wave: Wave | None  # None: not released in one
    targets: list[Target]
    more: dict[str, int]  # by state: targets that are not listed; not a Counter, which answers a template with 0
    said: str = ""  # of the wave, once a stage where it stays the same
    is_outside: bool = False  # nodes that began without a release of this plan: escaped, or changing already

    @cached_property
    def is_done(self) -> bool:
        return self.wave is not None and all(
            target.shown_state in DONE and not (target.fails or target.has_escaped or target.cordon)  # type: ignore[attr-defined]
            for target in self.targets
        )

    @property
    def ended(self) -> list[tuple[str, str, int]]:
        """Returns (state, word, number) of a finished wave's nodes."""
        counts = Counter(str(target.shown_state) for target in self.targets)
        return [(state, word, counts[state]) for state, word in ENDED if counts[state]]

    @property
    def key(self) -> str:
        """Returns a key that changes with the shown nodes."""
        return digest([_shown_fields(target) for target in self.targets])

    @property
    def is_over(self) -> bool:
        return Shown.NOT_BEGUN in self._shown_states

    @property
    def keeps_some(self) -> bool:
        """Returns whether some of these nodes are still held; releasing thousands takes minutes."""
        return TargetState.HELD in self._shown_states

    @cached_property
    def _shown_states(self) -> frozenset[str]:
        return frozenset(self.more).union(target.shown_state for target in self.targets)


def _shown_fields(target: Target) -> list[Any]:
    of_rows = [target.node_uid, target.shown_state, target.reason, target.state_since.isoformat()]
    beside = [target.cordon.says if target.cordon else "", *(one.says for one in target.exclusions)]
    return [*of_rows, target.node_id, beside]  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Column:
    on_page: StageOnPage
    gates: list[GateLine]
    waves: list[WaveGroup]
    node_ids: dict[str, int]
    segments: list[tuple[str, float, float]]
    changed: int  # includes nodes that rolled back since
    failed: int
    unfinished: int  # released, neither changed nor failed
    untouched: int  # never released
    back: int  # of all nodes, including failed and unfinished ones
    total: int
    is_shown: bool
    soak_until: datetime | None
    at_once: AtOnce | None  # None: the plan ended, or the operator's limit is unknown

    @property
    def gate_groups(self) -> list[SharedWait[GateLine] | GateLine]:
        """Returns the gates in their order. Gates that wait for the same reason are one group, as are unasked ones."""
        waits = [(line, line.answer) for line in self.gates if line.answer and line.may_share]
        unasked = tuple(line for line in self.gates if line.answer is None and not (line.is_over or line.gate.advisory))
        shared = [*shared_waits(waits), SharedWait("Not asked yet", "", (), (), unasked)]
        groups = {its.lines[0].gate.key: its for its in shared if len(its.lines) > 1}
        inside = {line.gate.key for its in groups.values() for line in its.lines[1:]}
        return [groups.get(line.gate.key, line) for line in self.gates if line.gate.key not in inside]

    @property
    def is_over(self) -> bool:
        """Returns whether its gates are no longer evaluated, so that failures are shown as past."""
        return all(line.is_over for line in self.gates)

    @property
    def is_approved(self) -> bool:
        answer = self.on_page.answers.get("approval")
        return answer is not None and answer.answer == "pass"

    @property
    def wants_approval(self) -> bool:
        stage = self.on_page.stage
        is_open = stage.state == StageState.OPENING and stage.plan.state == PlanState.PROMOTING
        return is_open and "approval" in stage.gate_options


def column_of(
    on_page: StageOnPage,
    node_ids: dict[str, int],
    following: StageOnPage | None = None,
    *,
    seen_until: datetime | None = None,
    at_once: AtOnce | None = None,
) -> Column:
    """Returns a stage's column. `seen_until` is when its cluster was last seen; None means now."""
    stage, counts = on_page.stage, on_page.counts
    total = sum(counts.values()) - counts[TargetState.EXCLUDED]
    happened = Counter(target.state for target in on_page.targets)
    blamed = _failing_gates_by_node(on_page)
    excludable = {TargetState.FAILED} if stage.state == StageState.ABANDONED else EXCLUDABLE
    goes_on = stage.state in TRIED_AGAIN_IN and not stage.is_rollback
    for target in on_page.targets:
        target.fails = blamed.get(target.node_name, "")  # type: ignore[attr-defined]
        target.node_id = node_ids.get(target.node_uid)  # type: ignore[attr-defined]
        target.may_be_retried = target.shown_state == TargetState.FAILED and goes_on  # type: ignore[attr-defined]
        target.may_be_excluded = target.shown_state in excludable  # type: ignore[attr-defined]
    gates = [
        _gate_line(gate, on_page, blamed, is_asked=is_asked(on_page, following), seen_until=seen_until)
        for gate in stage.gates
    ]
    return Column(
        on_page=on_page,
        gates=sorted(gates, key=lambda line: line.place),
        soak_until=None if seen_until else soak_until(on_page),
        waves=list(_waves(on_page.targets)),
        node_ids=node_ids,
        segments=_segments(_count_with_failing_gates(on_page.targets, counts), total),
        changed=happened[TargetState.CHANGED],
        failed=happened[TargetState.FAILED],
        unfinished=sum(happened[state] for state in IN_FLIGHT),
        untouched=happened[TargetState.HELD],
        back=counts[Shown.BACK],
        total=total,
        is_shown=stage.kind != StageKind.ROLLBACK or stage.state != StageState.WAITING,
        at_once=at_once,
    )


def _failing_gates_by_node(on_page: StageOnPage) -> dict[str, str]:
    """Returns the failing gate of each node; advisory gates are left out."""
    failing = [gate for gate in on_page.stage.gates if not gate.advisory and _answers(on_page, gate) == "fail"]
    return {node: gate.title for gate in failing for node in on_page.answers[gate.key].nodes}


def _answers(on_page: StageOnPage, gate: Gate) -> str:
    answer = on_page.answers.get(gate.key)
    return answer.answer if answer else ""


def _gate_line(
    gate: Gate, on_page: StageOnPage, blamed: Mapping[str, str], *, is_asked: bool, seen_until: datetime | None
) -> GateLine:
    answer = on_page.answers.get(gate.key)
    is_over = not is_asked or on_page.stage.state not in ASKED_IN.get(gate.when, set(StageState))
    until = soak_until(on_page) if isinstance(gate, Soak) and not is_over and not seen_until else None
    as_of = min(answer.at, seen_until) if answer and seen_until and not is_over else None
    overrides = [each for each in on_page.overrides if each.gate == gate.key]
    return GateLine(
        gate=gate,
        answer=answer,
        soak_until=until,
        is_over=is_over,
        remark=_remark(gate, answer, blamed),
        may_be_overridden=not is_over and not gate.advisory and _holds_up(gate, answer, on_page.stage),
        overrides=overrides,
        remedies=remedies(on_page.stage, answer) if answer and not is_over and not gate.advisory else (),
        as_of=as_of,
    )


def _holds_up(gate: Gate, answer: GateAnswer | None, stage: Stage) -> bool:
    if answer is None or answer.answer == "pass" or answer.cause in NEVER_OVERRIDDEN or stage.is_rollback:
        return False
    return answer.answer == "fail" or gate.when is not When.THROUGH or stage.state != StageState.PROMOTING


def _remark(gate: Gate, answer: GateAnswer | None, blamed: Mapping[str, str]) -> str:
    if not isinstance(gate, FailureBudget) or answer is None:
        return ""
    others = sorted(name for name, title in blamed.items() if title != gate.title and name not in answer.nodes)
    if not others:
        return ""
    return f"Not counted here: {names(tuple(others))}. These nodes are up but fail {blamed[others[0]]}."


def soak_until(on_page: StageOnPage | None) -> datetime | None:
    """Returns the end of the soak as its gate stored it; None if the clock does not run."""
    if on_page is None or on_page.stage.state != StageState.SOAKING:
        return None
    answer = on_page.answers.get(Soak.key)
    written = answer.value_of(UNTIL) if answer and answer.answer == "wait" else None
    return datetime.fromisoformat(written) if written else None


def is_asked(on_page: StageOnPage, following: StageOnPage | None) -> bool:
    """Returns whether gates of the stage are evaluated now, as in `decide`."""
    stage, plan = on_page.stage, on_page.stage.plan
    if plan.is_final or plan.state == PlanState.ABORTING:
        return False
    if stage.is_rollback or plan.state == PlanState.ROLLING_BACK:
        return stage.is_rollback and plan.state == PlanState.ROLLING_BACK and stage.state != StageState.WAITING
    if stage.state == StageState.PASSED:
        if following is None or following.stage.is_rollback or following.stage.state == StageState.ABANDONED:
            return True  # the end of the plan rests on it
        return following.stage.state == StageState.OPENING
    return stage.state != StageState.ABANDONED


def _waves(targets: Iterable[Target]) -> Iterable[WaveGroup]:
    by_wave: dict[int | None, list[Target]] = {}
    for target in targets:
        by_wave.setdefault(target.wave_id, []).append(target)
    before: Wave | None = None
    for key in sorted(key for key in by_wave if key is not None):
        wave = by_wave[key][0].wave
        yield WaveGroup(wave, by_wave[key], {}, wave_size_text(wave, before) if wave else "")
        before = wave
    outside = [target for target in by_wave.get(None, ()) if target.state in BEGUN]
    waiting = [target for target in by_wave.get(None, ()) if target.state not in BEGUN]
    for those in filter(None, (outside, waiting)):
        more = dict(Counter(one.shown_state for one in those[MOST_TARGETS:]))
        yield WaveGroup(None, those[:MOST_TARGETS], more, is_outside=those is outside)


def wave_size_text(wave: Wave, before: Wave | None) -> str:
    """Returns the wave's size with its limit, unless the wave before has the same."""
    number, _, reason = wave.reason.partition(": ")
    is_said = before is not None and bool(reason) and reason == before.reason.partition(": ")[2]
    return f"{number}." if is_said else wave.reason


def _count_with_failing_gates(targets: Iterable[Target], counts: Counter[str]) -> Counter[str]:
    """Counts a changed node with a failing gate as failed, so that no bar is green for a failing stage."""
    blamed = sum(target.shown_state == TargetState.CHANGED and bool(target.fails) for target in targets)  # type: ignore[attr-defined]
    return counts + Counter({TargetState.FAILED: blamed}) - Counter({TargetState.CHANGED: blamed})


def _segments(counts, total: int) -> list[tuple[str, float, float]]:
    """Returns (state, start, width) of 100. `total` excludes excluded nodes."""
    start, found = 0.0, []
    for state in (
        TargetState.CHANGED,
        Shown.BACK,
        TargetState.FAILED,
        TargetState.CHANGING,
        TargetState.RELEASED,
        TargetState.RELEASING,
    ):
        if counts[state]:
            width = 100 * counts[state] / total
            found.append((state.value, start, width))
            start += width
    return found
