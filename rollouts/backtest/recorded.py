"""Evidence of a past moment, of which some was never recorded, and the result of a gate on it. Pure.

A gate is evaluated twice. First everything that was not recorded is as good as it can be: a gate that fails or waits
then would have done so. If it passes, it is evaluated again without that assumption. A pass that needs evidence that
was not recorded is no pass.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, NamedTuple

from rollouts.gates.base import (
    NO_TARGET,
    TO_COME,
    UNSEEN,
    UNTIMED_WAITS,
    Answer,
    Evidence,
    Gate,
    GateResult,
    ServiceEvidence,
)
from rollouts.gates.base import TargetEvidence as Target

HOLDS_NOTHING = UNTIMED_WAITS | {TO_COME, UNSEEN, NO_TARGET}  # causes of waits that say nothing about the change
MOMENT = timedelta(seconds=1)


class NotRecorded(Exception):
    """A gate asked for evidence that was not recorded. Its text names the evidence."""


@dataclass(frozen=True)
class Missing:
    what: str  # such as "readiness of operands"


class _Recorded:
    def __getattribute__(self, name: str) -> Any:
        value = super().__getattribute__(name)
        if isinstance(value, Missing):
            raise NotRecorded(value.what)
        return value


class RecordedTarget(_Recorded, Target):
    """A node at a past moment."""


class RecordedService(_Recorded, ServiceEvidence):
    """The measurements of a service until a past moment."""


class RecordedEvidence(_Recorded, Evidence):
    """A stage at a past moment."""


@dataclass
class Recorded:
    """The evidence of one moment in both readings, each built when a gate asks for it."""

    build_at_best: Callable[[], Evidence]
    build_certain: Callable[[], Evidence]

    @cached_property
    def at_best(self) -> Evidence:
        return self.build_at_best()

    @cached_property
    def certain(self) -> Evidence:
        return self.build_certain()


class PastResult(NamedTuple):
    result: GateResult | None  # None: the gate cannot be evaluated
    missing: str = ""  # the evidence that was not recorded, if a pass or the result needs it

    @property
    def answer(self) -> Answer | None:
        return self.result.answer if self.result and not self.missing else None


def evaluate_past(gate: Gate, recorded: Recorded, *, now: datetime) -> PastResult:
    try:
        best = gate.evaluate(recorded.at_best, now=now)
    except NotRecorded as missing:
        return PastResult(None, str(missing))
    if best.answer is not Answer.PASS:
        return PastResult(best)
    try:
        certain = gate.evaluate(recorded.certain, now=now)
    except NotRecorded as missing:
        return PastResult(best, str(missing))
    return PastResult(certain) if certain.answer is Answer.PASS else PastResult(best, certain.title)


def missing_for(gate: Gate, recorded: Recorded, *, now: datetime) -> str:
    """Returns the evidence that the gate reads and that was not recorded; blank if there is none."""
    try:
        gate.evaluate(recorded.certain, now=now)
    except NotRecorded as missing:
        return str(missing)
    return ""


def wait_without_end(gate: Gate, recorded: Recorded, *, now: datetime) -> GateResult | None:
    """Returns the WAIT of a gate that a longer wait alone does not end; None if it does not wait so."""
    later = now + max(durations_of(gate), default=MOMENT) + MOMENT
    first, then = (evaluate_past(gate, recorded, now=at) for at in (now, later))
    if first.answer is not Answer.WAIT or first.result is None or first.result.cause in HOLDS_NOTHING:
        return None
    is_same = then.answer is Answer.WAIT and then.result is not None and then.result.cause == first.result.cause
    return first.result if is_same else None


def durations_of(gate: Gate) -> list[timedelta]:
    """Returns the options of a gate that are times: its result can change when one has passed."""
    values = (getattr(gate, option.name) for option in fields(gate) if option.name != "wait_timeout")
    return [value for value in values if isinstance(value, timedelta)]
