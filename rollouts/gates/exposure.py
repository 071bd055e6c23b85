"""Tenants have worked on the changed nodes for long enough; an idle canary proves nothing (Z27).

Only observed work counts. A driver that crashes under load is found only by load, and the order of least disruption
takes idle nodes first.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar

from rollouts.gates.base import (
    NO_TARGET,
    TO_COME,
    UNSEEN,
    Evidence,
    Gate,
    GateResult,
    TargetEvidence,
    When,
    kept_empty,
    passed,
    share,
    wait,
)
from wording.lists import names
from wording.numbers import count, was

MINUTE = timedelta(minutes=1)


@dataclass(frozen=True)
class Exposure(Gate):
    gpu_minutes: int = 60  # of tenants' work on the changed nodes of the stage, together
    nodes: int = 1  # of which each has had a GPU-minute of it

    key: ClassVar[str] = "exposure"
    title: ClassVar[str] = "Exposure"
    when: ClassVar[When] = When.THROUGH

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.gpu_minutes < 1 or self.nodes < 1:
            raise ValueError("gpu_minutes and nodes are at least 1: with less it would pass on no work at all.")

    def evaluate(self, evidence: Evidence, *, now: object) -> GateResult:
        if not evidence.counted:
            return wait("The stage has no target left: nothing can work there.", cause=NO_TARGET)
        worked = [target for target in evidence.changed if _seen(target) >= MINUTE]
        total = sum((_seen(target) for target in evidence.changed), timedelta())
        minutes = total // MINUTE
        measured: dict[str, Any] = {
            "gpu_minutes": minutes,
            "gpu_minutes_needed": self.gpu_minutes,
            "nodes": len(worked),
            "nodes_needed": self.nodes,
        }
        if self.nodes > len(evidence.counted):
            few = (
                f"It asks for tenants' work on {count(self.nodes, 'node')}, and the stage has {len(evidence.counted)}."
            )
            return wait(few, cause="too-few-nodes", measured=measured, is_final=True)
        if minutes < self.gpu_minutes or len(worked) < self.nodes:
            return self._too_little(evidence, minutes, worked, measured)
        if evidence.not_changed:
            to_come = f"{share(len(evidence.not_changed), len(evidence.counted))} still to come."
            return wait(to_come, cause=TO_COME, measured=measured)
        seen = f"{_amount(minutes, worked)} since the change: {self._asked}.{_unsaid(worked)}"
        return passed(seen, measured=measured)

    @property
    def _asked(self) -> str:
        return f"it asks for {self.gpu_minutes} on {count(self.nodes, 'node')}"

    def _too_little(
        self, evidence: Evidence, minutes: int, worked: list[TargetEvidence], measured: dict[str, Any]
    ) -> GateResult:
        if not evidence.changed:
            return wait(f"No node has changed yet: {self._asked}.", cause=TO_COME, measured=measured)
        if unseen := tuple(target.name for target in evidence.changed if not target.is_seen or target.work is None):
            nobody = f"What tenants have worked on {names(unseen)} since the change cannot be seen."
            return wait(nobody, cause=UNSEEN, nodes=unseen, measured=measured)
        later = _later(evidence)
        if not minutes:
            if empty := kept_empty(evidence.changed, measured):
                return empty
            idle = tuple(target.name for target in evidence.changed)
            none = f"No GPU-minute of tenants' work was seen on {names(idle)} since the change: {self._asked}.{later}"
            return wait(none, cause="idle", nodes=idle, measured=measured)
        little = f"{_amount(minutes, worked)} since the change: {self._asked}.{_unsaid(worked)}{later}"
        return wait(little, cause="too-little", measured=measured)


def _seen(target: TargetEvidence) -> timedelta:
    """Returns the GPU time; zero for a node that is not seen now."""
    return target.work.gpu_time if target.work and target.is_seen else timedelta()


def _amount(minutes: int, worked: list[TargetEvidence]) -> str:
    of = f"{count(minutes, 'GPU-minute')} of tenants' work {was(minutes)} seen"
    return f"{of} on {names([target.name for target in worked])}" if worked else of


def _unsaid(worked: list[TargetEvidence]) -> str:
    """Returns a clause on what the counted time is without telemetry; empty if telemetry covers all of it."""
    unheard = [target.name for target in worked if not (target.work and target.work.is_heard)]
    if not unheard:
        return ""
    return f" How busy the GPUs of {names(unheard)} were nothing says: there it is for how long pods have had them."


def _later(evidence: Evidence) -> str:
    """Returns why more work may have been done than counted; empty if there is no sign of it."""
    heard = [target.name for target in evidence.changed if target.work and target.work.is_heard]
    if not heard:
        return ""
    return f" Telemetry tells when the GPUs of {names(heard)} are busy: an hour of theirs counts once it is over."
