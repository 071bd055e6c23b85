"""Stages that need more approvals than there are people to give them."""

from collections.abc import Iterator

from people.rights import Permission, who_may
from rollouts.checks import Check
from rollouts.gates.approval import ApprovalGate
from rollouts.preflight.subject import Subject
from wording.numbers import count


def cannot_be_approved(subject: Subject) -> Iterator[Check]:
    """One query."""
    plan = subject.plan
    people = sorted(who_may(Permission.APPROVE, cluster_id=plan.cluster_id) - {plan.author, plan.last_editor})
    for stage in subject.stages:
        gate = next((gate for gate in stage.gates if isinstance(gate, ApprovalGate)), None)
        if gate is None or gate.needed <= len(people):
            continue
        needs = f"{stage.name} needs {count(gate.needed, 'approval')}"
        may = f"only {count(len(people), 'person', 'people')} may give one: {', '.join(people[:5])}"
        sentence = f"{needs}, and {may if people else 'nobody but who wrote the plan may give one'}."
        yield Check("approvers", sentence, "Ask for fewer, or have an admin give more people the role approver.")
