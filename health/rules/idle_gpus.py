"""GPUs that pods have allocated and do not use, so no other pod can have them. It is a note: the limit depends on the
work, and a pool may set its own in minutes.

It reads the roll-ups of whole hours, or the minutes where a pool has a limit of its own, and only GPUs with known
utilisation. Missing data is not idleness.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar

from gpu.resources import Way, in_words
from health.rules.base import NODE, NODES, PODS, WHOLE, IdleAllocation, NodeFacts, Problem, Severity
from health.rules.limits import OURS, Limits, Scale
from health.telemetry.hours import IDLE_BELOW as BELOW
from wording.durations import spell
from wording.reports import EvidenceItem, first_items, fit

# Idle hours before a finding opens, by workload class; our choice. Batch: two, so that loading data does not count. A
# service waits for requests for a day, a person's notebook for a night (Z28 asks for notes by class).
IDLE_HOURS: Mapping[str, int] = {"training": 2, "mixed": 2, "development": 12, "inference": 24}
WITHOUT_POOL = 2
UNKNOWN = "unknown"  # shown in the evidence for GPUs without a known UUID


@dataclass(frozen=True)
class IdleGpus:
    limits: Limits = field(default_factory=lambda: Limits(60 * WITHOUT_POOL))  # minutes

    key: ClassVar[str] = "idle-gpus"
    title: ClassVar[str] = "Allocated GPUs idle"
    subject: ClassVar[str] = NODE
    reads: ClassVar[tuple[str, ...]] = (NODES, PODS)
    limits_by_class: ClassVar[str] = (
        "Its own, in whole hours: inference 24, development 12, all others 2. It is a note."
    )
    scale: ClassVar[Scale] = Scale("min", 10, 24 * 60, may_be_critical=False)
    steps: ClassVar[tuple[str, ...]] = (
        "Ask the owners of the pods (Evidence). A pod may wait for data, for its peers or for a person.",
        "End the pods that nobody needs.",
    )

    @property
    def after(self) -> timedelta:
        return self.limits.warn_after

    def evaluate(self, node: NodeFacts) -> Problem | None:
        is_ours = self.limits.whose == OURS
        hours = idle_hours_for(node.workload_classes) if is_ours else self.limits.warn / 60
        idle = [each for each in node.idle_allocations if each.hours >= hours]
        if not idle:
            return None
        boards, pods = _boards(idle), _allocations_by_pod(idle)
        amounts = _amounts(each for each in idle if not each.board) + Counter({WHOLE: len(boards)})
        unplaced = sum(each.hours * each.number for each in idle if not each.board and each.way == WHOLE)
        has = {pod: _amounts_text(_amounts(its)) for pod, its in pods.items()}
        return Problem(
            severity=Severity.NOTE,
            title=fit("{} allocated and idle on {}", _amounts_text(amounts), node.name),
            summary=f"Each was less than {100 * BELOW:g} % busy "
            + (f"in each of the last {hours} hours." if is_ours else f"for {spell(timedelta(hours=hours))}."),
            evidence=(
                EvidenceItem("Idle, at least", sum(boards.values()) + unplaced, "GPU hours"),
                *(() if is_ours else self.limits.evidence("min", is_critical=False)),
                *first_items(EvidenceItem(f"Pod {pod}", amount) for pod, amount in has.items()),
            ),
            facts={
                "below": BELOW,
                "hours": hours,
                "gpu_hours_at_least": sum(boards.values()) + unplaced,
                "pods": {pod: _facts(its) for pod, its in pods.items()},
            },
            opens_after=self.after,
            identity=" ".join((str(hours), *sorted(boards), *(f"{pod} ({amount})" for pod, amount in has.items()))),
        )


def idle_hours_for(workload_classes: Collection[str]) -> int:
    """Returns after how many idle hours a GPU is reported on a node whose pools are of these classes."""
    return max((IDLE_HOURS[each] for each in workload_classes if each in IDLE_HOURS), default=WITHOUT_POOL)


def all_idle_hours() -> list[int]:
    """Returns the hours of all rules, the fewest first."""
    return sorted({*IDLE_HOURS.values(), WITHOUT_POOL})


def reported_hours_of(facts: Mapping[str, Any]) -> dict[tuple[str, str], float]:
    """Returns by pod and board the minimum of idle hours from a finding's facts. An empty board means unknown."""
    return {
        (pod, "" if board == UNKNOWN else board): hours
        for pod, its in facts.get("pods", {}).items()
        for board, hours in its.get("idle_hours", {}).items()
    }


def _boards(idle: Iterable[IdleAllocation]) -> dict[str, float]:
    """Returns idle hours by UUID. A board shared by several pods counts as one GPU."""
    found: dict[str, float] = {}
    for each in idle:
        if each.board:
            found[each.board] = max(each.hours, found.get(each.board, 0))
    return found


def _allocations_by_pod(idle: Iterable[IdleAllocation]) -> dict[str, list[IdleAllocation]]:
    """Groups idle allocations by pod, the pods with the most GPUs first."""
    found: dict[str, list[IdleAllocation]] = defaultdict(list)
    for each in idle:
        found[each.pod].append(each)
    return dict(sorted(found.items(), key=lambda pair: (-_amounts(pair[1])[WHOLE], pair[0])))


def _facts(idle: Collection[IdleAllocation]) -> dict[str, Any]:
    """Returns the facts of one pod."""
    return {"has": _amounts_text(_amounts(idle)), "idle_hours": {each.board or UNKNOWN: each.hours for each in idle}}


def _amounts(idle: Iterable[IdleAllocation]) -> Counter[Way]:
    found: Counter[Way] = Counter()
    for each in idle:
        found[each.way] += each.number
    return found


def _amounts_text(amounts: Counter[Way]) -> str:
    """Returns the amounts as text, whole GPUs first: `1 GPU and 4 time-slices`."""
    ways = sorted((way for way in amounts if amounts[way]), key=lambda way: (way != WHOLE, str(way)))
    return " and ".join(in_words(amounts[way], way) for way in ways)
