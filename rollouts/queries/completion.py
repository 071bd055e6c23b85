"""Tells whether a plan can complete without its failed or held nodes, and which ones."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Count, Exists, OuterRef

from edges.digests import digest
from fleet.models import Node
from health.models import Finding
from health.rules.upgrade_failed import UpgradeFailed
from rollouts.lifecycle import IN_FLIGHT, PlanState, StageState, TargetState
from rollouts.models import Plan, Stage, Target, Wave
from wording.lists import names
from wording.numbers import are, count, stay

LEFT_OUT = (TargetState.FAILED, TargetState.HELD)
OVER = frozenset({StageState.PASSED, StageState.ABANDONED})


@dataclass(frozen=True)
class Completion:
    why_not: str  # why it cannot end so now; blank: it can
    failed: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    failed_held: tuple[str, ...] = ()  # failed nodes with our hold or a foreign one
    stage: Stage | None = None  # whose nodes they are
    is_empty: bool = False  # and without them it has no node left

    @property
    def seen(self) -> str:
        """Returns a hash of all excluded nodes, since the sentence names only the first."""
        return digest([self.failed, self.held])

    @property
    def says(self) -> str:
        free = tuple(name for name in self.failed if name not in self.failed_held)
        kept = self.failed_held
        parts = (
            f"{names(free, most=5)} failed and {are(len(free))} not held" if free else "",
            f"{names(kept, most=5)} failed, and {stay(len(kept))} held" if kept else "",
            f"{names(self.held, most=5)} {stay(len(self.held))} held with the present driver" if self.held else "",
        )
        return f"Left out: {'; '.join(part for part in parts if part)}." if self.failed or self.held else ""


def completion_of(plan: Plan) -> Completion:
    """Returns the completion. At most four queries; excluded nodes are read by name."""
    if plan.state not in {PlanState.PROMOTING, PlanState.HALTED}:
        return Completion(f"A plan that is {plan.state.replace('-', ' ')} cannot be completed.")
    stages = list(plan.stages.forward())
    current = next((stage for stage in stages if stage.state not in OVER), None)
    if current is None:
        return Completion("Every stage has passed, so the plan ends by itself.")
    rows = Target.objects.filter(stage__plan=plan).forward().order_by("stage__index", "state")
    found = rows.values_list("stage__index", "state").annotate(number=Count("pk"))
    numbers = {(index, TargetState(state)): number for index, state, number in found}
    if refusal := _why_not(stages, current, numbers):
        return Completion(refusal)
    labelled = Node.objects.filter(cluster=plan.cluster_id, uid=OuterRef("node_uid"), is_held=True)
    rows = current.targets.filter(state__in=LEFT_OUT).order_by("position")
    left = rows.values_list("node_name", "state", Exists(labelled))
    return Completion(
        why_not="",
        failed=tuple(name for name, state, _ in left if state == TargetState.FAILED),
        held=tuple(name for name, state, _ in left if state == TargetState.HELD),
        failed_held=tuple(name for name, state, is_held in left if state == TargetState.FAILED and is_held),
        stage=current,
        is_empty=not numbers.get((current.index, TargetState.CHANGED)),
    )


def _why_not(stages: list[Stage], current: Stage, numbers: dict[tuple[int, TargetState], int]) -> str:
    later = [stage for stage in stages if stage.index > current.index]
    if later:
        nodes = sum(n for (at, state), n in numbers.items() if at > current.index and state != TargetState.EXCLUDED)
        to_come = f"{names(tuple(stage.name for stage in later))} {are(len(later))} still to come"
        return f"{to_come}, with {count(nodes, 'node')}: the plan can be completed in its last stage."
    has_none = all(state == TargetState.EXCLUDED or not n for (at, state), n in numbers.items() if at == current.index)
    if not has_none and not Wave.objects.filter(stage=current).exists():
        return f"{current.name} has released no node yet. Continue, or roll back."
    if on_the_way := sum(numbers.get((current.index, state), 0) for state in IN_FLIGHT):
        return (
            f"{count(on_the_way, 'node')} of {current.name} {are(on_the_way)} being changed. Wait until the "
            "change ends."
        )
    if not has_none and not any(numbers.get((current.index, state)) for state in LEFT_OUT):
        return "No node failed or is held. The plan ends by itself once every gate passes."
    if not any(numbers.get((stage.index, TargetState.CHANGED)) for stage in stages):
        return "No node has changed, so the plan cannot be completed. Roll it back, or abort it."
    return ""


def causes_found(node_uids: Iterable[str]) -> dict[str, str]:
    """Returns the cause of each failed upgrade by node UID. One query."""
    told = Finding.objects.unresolved().filter(rule=UpgradeFailed.key, node__uid__in=list(node_uids))
    return {uid: " ".join(causes) for uid, causes in told.values_list("node__uid", "causes") if causes}
