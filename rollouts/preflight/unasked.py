"""Stages that nobody is asked about: only where cluster or pool say `approval: none`, and never in production."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from fleet.models import ApprovalRule, Node
from rollouts.checks import Check
from rollouts.models import Plan, Stage
from rollouts.unasked import GATE, why
from wording.lists import names


def unasked(stages: Iterable[Stage]) -> list[Stage]:
    return [stage for stage in stages if GATE not in stage.gate_options]


def must_ask(plan: Plan, stages: Iterable[Stage], picked: Mapping[int, Sequence[Node]]) -> Iterator[Check]:
    """Stages without an approval that need one. Pools of the nodes are prefetched."""
    for stage in unasked(stages):
        asked = {node.name: because for node in picked.get(stage.index, ()) if (because := why(plan.cluster, node))}
        if asked:
            first = next(iter(asked.values()))
            sentence = f"{stage.name} has no approval, and {names(tuple(asked))} must not change unasked: {first}."
            yield Check("unasked", sentence, "Edit the stage: at least one approval.")


def goes_unasked(plan: Plan, stages: Iterable[Stage]) -> Iterator[Check]:
    for stage in unasked(stages):
        sentence = f"{stage.name} starts without anybody being asked: {said_by(plan, stage)} says “approval: none”."
        yield Check("approval-none", sentence, "Add an approval, if somebody else should look first.", is_grave=True)


def said_by(plan: Plan, stage: Stage) -> str:
    if stage.pool is not None and stage.pool.approval == ApprovalRule.NONE:
        return f"pool {stage.pool.name}"
    return f"cluster {plan.cluster.name}"
