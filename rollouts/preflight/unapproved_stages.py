"""Stages without approval: allowed only where cluster or pool say `approval: none`, and never in production."""

from collections.abc import Iterable, Iterator

from fleet.models import ApprovalRule
from rollouts.approvals.approvers import eligible, too_few
from rollouts.approvals.automatic_approvals import GATE, why_node_needs_approval
from rollouts.checks import Check, each, stage_field
from rollouts.gates.approval import ApprovalGate
from rollouts.models import Plan, Stage
from rollouts.preflight.subject import PreflightSubject

MORE_APPROVERS = (
    "Ask for fewer approvals.",
    "Or ask an admin to give more people the role approver, or to add people to the group.",
)


def unasked(stages: Iterable[Stage]) -> list[Stage]:
    return [stage for stage in stages if GATE not in stage.gate_options]


def missing_approvals(subject: PreflightSubject) -> Iterator[Check]:
    """Yields blockers for stages that need an approval and have none."""
    for stage in unasked(subject.stages):
        nodes = subject.picks.by_stage.get(stage.index, ())
        asked = {node.name: reason for node in nodes if (reason := why_node_needs_approval(subject.plan.cluster, node))}
        if asked:
            first = next(iter(asked.values()))
            yield Check(
                "unasked",
                title=f"{stage.name} needs an approval",
                summary=f"{first[0].upper()}{first[1:]}.",
                evidence=each(asked.items()),
                steps=("Add the approval gate to the stage.",),
                field=_field(stage),
            )


def stages_without_approval(subject: PreflightSubject) -> Iterator[Check]:
    for stage in unasked(subject.stages):
        yield Check(
            "approval-none",
            title=f"{stage.name} starts without an approval",
            summary=f"The {approval_rule_owner(subject.plan, stage)} has the setting “approval: none”.",
            steps=("Add an approval if another person should review it.",),
            is_grave=True,
            field=_field(stage),
        )


def _field(stage: Stage) -> str:
    return stage_field(stage.index, f"gate_options.{GATE}")


def approval_rule_owner(plan: Plan, stage: Stage) -> str:
    if stage.pool is not None and stage.pool.approval == ApprovalRule.NONE:
        return f"pool {stage.pool.name}"
    return f"cluster {plan.cluster.name}"


def cannot_be_approved(subject: PreflightSubject) -> Iterator[Check]:
    """Yields blockers. One query, and two per stage with groups."""
    people = eligible(subject.plan)
    for stage in subject.stages:
        if sentence := too_few(subject.plan, stage, people):
            field = stage_field(stage.index, f"gate_options.{ApprovalGate.key}")
            title = f"{stage.name} has too few approvers"
            yield Check("approvers", title=title, summary=sentence, steps=MORE_APPROVERS, field=field)
