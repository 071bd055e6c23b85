"""Commands of people on cases: open, close, retire. Operations quarantine, drain and release the node."""

from datetime import datetime

from django.db import IntegrityError, transaction

from edges.transition_errors import LostRace
from fleet.models import Node
from health.models import Finding
from maintenance.lifecycle import ACTS, CaseState
from maintenance.models import NodeCase
from maintenance.refusals import CaseRefused
from wording.instants import to_the_minute


def open_case(node: Node, *, actor: str, reason: str, finding: Finding | None = None, now: datetime) -> NodeCase:
    """Opens a case of a node.

    :raises CaseRefused: when the node has an open case, or the finding is about another node
    """
    if finding is not None and finding.node_id != node.pk:
        raise CaseRefused(f"The finding is not about {node.name}.")
    try:
        with transaction.atomic():
            case = NodeCase.objects.create(
                cluster_id=node.cluster_id, node_uid=node.uid, node_name=node.name, state=CaseState.SUSPECT,
                state_since=now, state_reason=reason, moved_by=actor, opened_at=now, opened_by=actor, reason=reason,
                finding=finding, fault_at=now,
            )  # fmt: skip
            evidence = {"finding": finding.pk, "title": finding.title} if finding else {}
            case.record("opened", actor=actor, reason=reason, now=now, evidence=evidence)
    except IntegrityError as clash:
        earlier = NodeCase.objects.open().of_node(node.uid).first()
        if earlier is None:
            raise
        raise CaseRefused(f"{node.name} has an open case. {state_now(earlier)}") from clash
    return case


def close(case: NodeCase, *, actor: str, reason: str, seen: str = "", now: datetime) -> None:
    """Ends the case; the node stays in service. Raises as `move_by` does."""
    move_by("close", CaseState.CLOSED, case, actor=actor, reason=reason, seen=seen, now=now)


def retire(case: NodeCase, *, actor: str, reason: str, seen: str = "", now: datetime) -> None:
    """Ends the case; the node does not return, and Quarterdeck's cordon stays. Raises as `move_by` does."""
    move_by("retire", CaseState.RETIRED, case, actor=actor, reason=reason, seen=seen, now=now)


def move_by(act: str, to: CaseState, case: NodeCase, *, actor: str, reason: str, seen: str, now: datetime) -> None:
    """Moves the case by an act of a person. `seen` is the state that the person saw; blank: any.

    :raises CaseRefused: when the case has another state than the person saw, or does not offer the act in its state
    """
    if (seen and seen != case.state) or CaseState(case.state) not in ACTS[act].states:
        raise CaseRefused(state_now(case))
    try:
        case.move(to, actor=actor, reason=reason, now=now)
    except LostRace as lost:
        raise CaseRefused(state_now(NodeCase.objects.get(pk=case.pk))) from lost


def state_now(case: NodeCase) -> str:
    """Returns a sentence with the state, who moved it and why."""
    since = f"{case.title.lower()} since {to_the_minute(case.state_since)}"
    return f"Case {case.pk} of {case.node_name}: {since}, by {case.moved_by}: {case.state_reason}"
