"""GPUs that pods have allocated and do not use, so no other pod can have them. It is a note: the limit depends on the
work.

It reads the roll-ups of whole hours, and only GPUs with known utilisation. Missing data is not idleness.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar

from gpu.resources import Way, in_words
from health.rules.base import NODE, NODES, PODS, WHOLE, IdleAllocation, NodeFacts, Severity, Wrong
from wording.lists import names
from wording.numbers import are, either

BELOW = 0.05  # of its time, in the mean of an hour. Ours
# How many hours it must be so. Ours: one, and one more, so that a job that loads its data is not told of; a service
# waits for requests for a day, a person's notebook for a night (Z28 asks for notes by workload class).
IDLE_HOURS: Mapping[str, int] = {"training": 2, "mixed": 2, "development": 12, "inference": 24}
WITHOUT_POOL = 2
UNKNOWN = "unknown"  # in the evidence, for the boards of which nothing says which they are


@dataclass(frozen=True)
class IdleGpus:
    key: ClassVar[str] = "idle-gpus"
    title: ClassVar[str] = "Allocated GPUs idle"
    subject: ClassVar[str] = NODE
    reads: ClassVar[tuple[str, ...]] = (NODES, PODS)
    after: ClassVar[timedelta] = timedelta(0)  # the hours took their time

    def evaluate(self, node: NodeFacts) -> Wrong | None:
        hours = idle_hours_for(node.workload_classes)
        idle = [each for each in node.idle_allocations if each.hours >= hours]
        if not idle:
            return None
        boards, pods = _boards(idle), _by_pod(idle)
        amounts = _amounts(each for each in idle if not each.board) + Counter({WHOLE: len(boards)})
        unplaced = sum(each.hours * each.number for each in idle if not each.board and each.way == WHOLE)
        who = [f"{pod} ({_in_words(_amounts(its))})" for pod, its in pods.items()]
        return Wrong(
            Severity.NOTE,
            f"{_in_words(amounts)} of {node.name} {are(amounts.total())} allocated and less than {BELOW:.0%} busy, in "
            f"each of the last {hours} hours and more: {names(who)}.",
            f"Ask whose {either(len(pods), 'pod it is', 'pods they are')}: one that waits for data, for its peers or "
            "for a person has its GPUs as one that works does. What nobody needs is to be ended.",
            {
                "below": BELOW,
                "hours": hours,
                "gpu_hours_at_least": sum(boards.values()) + unplaced,
                "pods": {pod: _evidence(its) for pod, its in pods.items()},
            },
            why=f"{hours} {' '.join(sorted(boards))} {' '.join(who)}",
        )


def idle_hours_for(workload_classes: Collection[str]) -> int:
    """Returns after how many idle hours a GPU is reported on a node whose pools are of these classes."""
    return max((IDLE_HOURS[each] for each in workload_classes if each in IDLE_HOURS), default=WITHOUT_POOL)


def all_idle_hours() -> list[int]:
    """Returns the hours of all rules, the fewest first."""
    return sorted({*IDLE_HOURS.values(), WITHOUT_POOL})


def reported_hours_of(evidence: Mapping[str, Any]) -> dict[tuple[str, str], int]:
    """Returns by pod and board the minimum of idle hours that a finding reported. An empty board means unknown."""
    return {
        (pod, "" if board == UNKNOWN else board): hours
        for pod, its in evidence["pods"].items()
        for board, hours in its.get("idle_hours", {}).items()
    }


def _boards(idle: Iterable[IdleAllocation]) -> dict[str, int]:
    """Returns idle hours by UUID. A board shared by several pods counts as one GPU."""
    found: dict[str, int] = {}
    for each in idle:
        if each.board:
            found[each.board] = max(each.hours, found.get(each.board, 0))
    return found


def _by_pod(idle: Iterable[IdleAllocation]) -> dict[str, list[IdleAllocation]]:
    """Groups idle allocations by pod, the pods with the most GPUs first."""
    found: dict[str, list[IdleAllocation]] = defaultdict(list)
    for each in idle:
        found[each.pod].append(each)
    return dict(sorted(found.items(), key=lambda pair: (-_amounts(pair[1])[WHOLE], pair[0])))


def _evidence(idle: Collection[IdleAllocation]) -> dict[str, Any]:
    """Returns the evidence of one pod."""
    return {"has": _in_words(_amounts(idle)), "idle_hours": {each.board or UNKNOWN: each.hours for each in idle}}


def _amounts(idle: Iterable[IdleAllocation]) -> Counter[Way]:
    found: Counter[Way] = Counter()
    for each in idle:
        found[each.way] += each.number
    return found


def _in_words(amounts: Counter[Way]) -> str:
    """Returns the amounts as text, whole GPUs first: `1 GPU and 4 time-slices`."""
    ways = sorted((way for way in amounts if amounts[way]), key=lambda way: (way != WHOLE, str(way)))
    return " and ".join(in_words(amounts[way], way) for way in ways)
