"""Stages without approval: allowed only where cluster or pool say `approval: none`, and never in production."""

from collections.abc import Iterable, Iterator

from fleet.models import ApprovalRule
from rollouts.approvals.approvers import eligible, too_few
from rollouts.approvals.automatic_approvals import GATE, why
from rollouts.checks import Check, stage_field
from rollouts.gates.approval import ApprovalGate
from rollouts.models import Plan, Stage
from rollouts.preflight.subject import PreflightSubject
from wording.lists import names


def unasked(stages: Iterable[Stage]) -> list[Stage]:
    return [stage for stage in stages if GATE not in stage.gate_options]


def must_be_asked(subject: PreflightSubject) -> Iterator[Check]:
    """Yields blockers for stages that need an approval and have none."""
    for stage in unasked(subject.stages):
        nodes = subject.picks.by_stage.get(stage.index, ())
        asked = {node.name: reason for node in nodes if (reason := why(subject.plan.cluster, node))}
        if asked:
            first = next(iter(asked.values()))
            sentence = f"{stage.name} has no approval, and {names(tuple(asked))} must not change unasked: {first}."
            yield Check("unasked", sentence, "Edit the stage: at least one approval.", field=_field(stage))


def goes_unasked(subject: PreflightSubject) -> Iterator[Check]:
    for stage in unasked(subject.stages):
        sentence = (
            f"{stage.name} starts without anybody being asked: {said_by(subject.plan, stage)} says “approval: none”."
        )
        fix = "Add an approval, if somebody else should look first."
        yield Check("approval-none", sentence, fix, is_grave=True, field=_field(stage))


def _field(stage: Stage) -> str:
    return stage_field(stage.index, f"gate_options.{GATE}")


def said_by(plan: Plan, stage: Stage) -> str:
    if stage.pool is not None and stage.pool.approval == ApprovalRule.NONE:
        return f"pool {stage.pool.name}"
    return f"cluster {plan.cluster.name}"


def cannot_be_approved(subject: PreflightSubject) -> Iterator[Check]:
    """Yields blockers. One query, and two per stage with groups."""
    people = eligible(subject.plan)
    for stage in subject.stages:
        if sentence := too_few(subject.plan, stage, people):
            helps = "give more people the role approver, or put them into the group"
            field = stage_field(stage.index, f"gate_options.{ApprovalGate.key}")
            yield Check("approvers", sentence, f"Ask for fewer, or have an admin {helps}.", field=field)
