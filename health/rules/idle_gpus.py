"""GPUs that pods hold and do nothing with: nobody else can have them. A note: how long that is right, the work decides.

By the roll-ups of whole hours, and only of GPUs whose utilisation somebody heard: what is not exported is not idle.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import NODE, NODES, PODS, NodeFacts, Severity, Wrong
from wording.lists import names
from wording.numbers import count, either

# Mission A6: allocated but idle is less than 5 % for an hour.
BELOW = 0.05  # of its time, in the mean of an hour
# How many hours it must be so: the hour of A6 and one more, so that a job that loads its data is not told of. Ours: a
# service waits for requests for a day, a person's notebook for a night (Z28 asks for notes by workload class).
PATIENCE: Mapping[str, int] = {"training": 2, "mixed": 2, "development": 12, "inference": 24}
WITHOUT_POOL = 2


@dataclass(frozen=True)
class IdleGpus:
    key: ClassVar[str] = "idle-gpus"
    title: ClassVar[str] = "GPUs held and idle"
    subject: ClassVar[str] = NODE
    reads: ClassVar[tuple[str, ...]] = (NODES, PODS)
    after: ClassVar[timedelta] = timedelta(0)  # the hours took their time

    def judge(self, node: NodeFacts) -> Wrong | None:
        hours = max((PATIENCE[each] for each in node.workload_classes if each in PATIENCE), default=WITHOUT_POOL)
        idle = sorted((pod for pod in node.idle_pods if pod.hours >= hours), key=lambda pod: (-pod.gpus, pod.name))
        if not idle:
            return None
        gpus = sum(pod.gpus for pod in idle)
        who = [f"{pod.name} ({count(pod.gpus, 'GPU')})" for pod in idle]
        return Wrong(
            Severity.NOTE,
            f"{count(gpus, 'GPU')} of {node.name} {either(gpus, 'is', 'are')} held and less than {BELOW:.0%} busy, in "
            f"each of the last {hours} hours and more: {names(who)}.",
            f"Ask whose {either(len(idle), 'pod it is', 'pods they are')}: one that waits for data, for its peers or "
            "for a person holds its GPUs as one that works does. What nobody needs is to be ended.",
            {
                "below": BELOW,
                "hours": hours,
                "gpu_hours_at_least": sum(pod.gpus * pod.hours for pod in idle),
                "pods": {pod.name: {"gpus": pod.gpus, "hours_at_least": pod.hours} for pod in idle},
            },
            why=f"{hours} " + " ".join(f"{pod.name}:{pod.gpus}" for pod in idle),
        )


def patiences() -> list[int]:
    """The hours that any rule asks for, the fewest first."""
    return sorted({*PATIENCE.values(), WITHOUT_POOL})
