"""The board of a plan: a column a stage, with its gates, its waves, and how far it is."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from rollouts.gates.base import Gate
from rollouts.gates.soak import Soak
from rollouts.lifecycle import StageState, TargetState
from rollouts.models import Answer, StageKind, Target, Wave
from rollouts.models.target import Shown
from rollouts.queries import StageOnPage

MOST_TARGETS = 60  # a stage; the rest are counted
NEEDS_TO_EXCLUDE = {TargetState.HELD, TargetState.FAILED}


@dataclass(frozen=True)
class GateLine:
    gate: Gate
    answer: Answer | None
    soak_until: datetime | None = None

    @property
    def options(self) -> str:
        return ", ".join(f"{name.replace('_', ' ')} {_option(value)}" for name, value in vars(self.gate).items())


def _option(value: Any) -> str:
    return f"{value.total_seconds() / 60:g} min" if isinstance(value, timedelta) else str(value)


@dataclass(frozen=True)
class WaveGroup:
    wave: Wave | None  # None: not released yet
    targets: list[Target]
    more: dict[str, int]  # by state: those that are not listed; no Counter, which answers a template with 0

    @property
    def is_over(self) -> bool:
        """None of it will go any more: the plan left these nodes as they were."""
        return any(target.shown_state == Shown.NOT_BEGUN for target in self.targets)


@dataclass(frozen=True)
class Column:
    """One stage as the board draws it."""

    on_page: StageOnPage
    gates: list[GateLine]
    waves: list[WaveGroup]
    node_ids: dict[str, int]
    segments: list[tuple[str, float, float]]
    changed: int  # those that went back since included
    back: int
    total: int
    is_shown: bool

    @property
    def wants_approval(self) -> bool:
        return self.on_page.stage.state == StageState.OPENING and "approval" in self.on_page.stage.gate_options


def column_of(on_page: StageOnPage, node_ids: dict[str, int]) -> Column:
    stage, counts = on_page.stage, on_page.counts
    total = sum(counts.values()) - counts[TargetState.EXCLUDED]
    blamed = _blamed(on_page)
    for target in on_page.targets:
        target.fails = blamed.get(target.node_name, "")  # type: ignore[attr-defined]
        target.node_id = node_ids.get(target.node_uid)  # type: ignore[attr-defined]
        target.may_be_excluded = target.shown_state in NEEDS_TO_EXCLUDE  # type: ignore[attr-defined]
    return Column(
        on_page=on_page,
        gates=[_gate_line(gate, on_page) for gate in stage.gates],
        waves=list(_waves(on_page.targets)),
        node_ids=node_ids,
        segments=_segments(counts, len(on_page.targets)),
        changed=counts[TargetState.CHANGED] + counts[Shown.BACK],
        back=counts[Shown.BACK],
        total=total,
        is_shown=stage.kind != StageKind.BACK or stage.state != StageState.WAITING,
    )


def _blamed(on_page: StageOnPage) -> dict[str, str]:
    """Node → the gate that fails because of it: its target may well be green."""
    failing = [gate for gate in on_page.stage.gates if _answers(on_page, gate) == "fail"]
    return {node: gate.title for gate in failing for node in on_page.answers[gate.key].nodes}


def _answers(on_page: StageOnPage, gate: Gate) -> str:
    answer = on_page.answers.get(gate.key)
    return answer.answer if answer else ""


def _gate_line(gate: Gate, on_page: StageOnPage) -> GateLine:
    answer = on_page.answers.get(gate.key)
    is_running = on_page.stage.state == StageState.SOAKING
    return GateLine(gate, answer, _soak_until(gate, answer) if is_running else None)


def _soak_until(gate: Gate, answer: Answer | None) -> datetime | None:
    """When the soak would be over; None where its clock does not run."""
    if not isinstance(gate, Soak) or answer is None or answer.answer != "hold":
        return None
    soaked = answer.numbers.get("soaked_s") or 0
    return answer.at + gate.duration - timedelta(seconds=soaked) if soaked else None


def _waves(targets: Iterable[Target]) -> Iterable[WaveGroup]:
    by_wave: dict[int | None, list[Target]] = {}
    for target in targets:
        by_wave.setdefault(target.wave_id, []).append(target)
    for key in sorted((key for key in by_wave if key is not None), reverse=True):
        yield WaveGroup(by_wave[key][0].wave, by_wave[key], {})
    if waiting := by_wave.get(None):
        yield WaveGroup(None, waiting[:MOST_TARGETS], dict(Counter(one.shown_state for one in waiting[MOST_TARGETS:])))


def _segments(counts, total: int) -> list[tuple[str, float, float]]:
    """(state, start, width) of 100: how far a stage is, at a glance."""
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
