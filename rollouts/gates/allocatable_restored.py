"""Every changed node offers as many GPUs as before. Fewer is a failure, not a wait."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar

from rollouts.gates.base import Evidence, TargetEvidence, Verdict, When, fail, hold, names, passed


@dataclass(frozen=True)
class AllocatableRestored:
    settle: timedelta = timedelta(minutes=2)  # the device plugin registers after the driver: until then fewer is a wait

    key: ClassVar[str] = "allocatable_restored"
    title: ClassVar[str] = "GPUs as before"
    when: ClassVar[When] = When.THROUGH

    def judge(self, evidence: Evidence, *, now: datetime) -> Verdict:
        short = [target for target in evidence.changed if fewer(target)]
        measured = {
            "before": sum(t.before.gpu_allocatable or 0 for t in evidence.changed if t.before),
            "now": sum(t.gpu_allocatable or 0 for t in evidence.changed),
        }
        settled = tuple(target.name for target in short if now - target.state_since > self.settle)
        if settled:
            return fail(f"{names(settled)} offer fewer GPUs than before the change.", nodes=settled, measured=measured)
        if short:
            nodes = tuple(target.name for target in short)
            return hold(f"{names(nodes)} do not offer all their GPUs yet.", nodes=nodes, measured=measured)
        unknown = tuple(t.name for t in evidence.changed if t.before is None or t.before.gpu_allocatable is None)
        if unknown:
            return hold(
                f"How many GPUs {names(unknown)} offered before is not known.", nodes=unknown, measured=measured
            )
        if evidence.not_changed:
            return hold(
                f"{len(evidence.not_changed)} of {len(evidence.counted)} nodes are still to come.", measured=measured
            )
        return passed(f"{measured['now']} GPUs are allocatable, {measured['before']} were.", measured=measured)


def fewer(target: TargetEvidence) -> bool:
    """Whether it is seen to offer fewer. A node that nobody sees offers nobody knows how many."""
    if not target.is_seen:
        return False
    if target.before is None or target.before.gpu_allocatable is None:
        return False
    return (target.gpu_allocatable or 0) < target.before.gpu_allocatable
