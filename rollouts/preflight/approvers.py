"""Stages that need more approvals than there are people who can give them."""

from collections.abc import Iterator

from rollouts.approvals.approvers import eligible, too_few
from rollouts.checks import Check, stage_field
from rollouts.gates.approval import ApprovalGate
from rollouts.preflight.subject import PreflightSubject


def cannot_be_approved(subject: PreflightSubject) -> Iterator[Check]:
    """Yields blockers. One query, and two per stage with groups."""
    people = eligible(subject.plan)
    for stage in subject.stages:
        if sentence := too_few(subject.plan, stage, people):
            helps = "give more people the role approver, or put them into the group"
            field = stage_field(stage.index, f"gate_options.{ApprovalGate.key}")
            yield Check("approvers", sentence, f"Ask for fewer, or have an admin {helps}.", field=field)
