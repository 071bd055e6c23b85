"""Commands of people on cases. Operations quarantine, drain and release the node."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from django.db import IntegrityError, transaction

from edges.transition_errors import LostRace
from fleet.models import Node
from health.models import Finding
from maintenance.acts import why_not
from maintenance.lifecycle import MOST_REBOOTS, CaseFacts, CaseState, RepairAnswer, RepairKind
from maintenance.models import NodeCase, Repair
from maintenance.queries import facts_of
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
                finding=finding, fault_at=(finding and finding.opened_at) or now,
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
    """Ends the case; the node stays in service. Raises as `changed` does."""
    with changed(case, "close", seen=seen):
        case.move(CaseState.CLOSED, actor=actor, reason=reason, now=now)


def retire(case: NodeCase, *, actor: str, reason: str, seen: str = "", now: datetime) -> None:
    """Ends the case; the node does not return, and Quarterdeck's cordon stays. Raises as `changed` does."""
    with changed(case, "retire", seen=seen):
        case.move(CaseState.RETIRED, actor=actor, reason=reason, now=now)
        case.repairs.filter(ended_at=None).update(ended_at=now)


def ask_repair(
    case: NodeCase, *, kind: str, link: str = "", deadline_h: int = 24, actor: str, reason: str, seen: str = "",
    now: datetime,
) -> None:  # fmt: skip
    """Asks a person for a repair. Raises as `changed` does.

    :raises CaseRefused: also after two reboots, which did not mend the node (lifecycle R7)
    """
    with changed(case, "repair", seen=seen) as facts:
        reboots = case.repairs.filter(kind=RepairKind.REBOOT).exclude(answer=RepairAnswer.REFUSED).count()
        if kind == RepairKind.REBOOT and reboots >= MOST_REBOOTS:
            raise CaseRefused("Two reboots did not mend the node. Ask for a hardware repair, or retire it.")
        if kind == RepairKind.REBOOT and not facts.boot_id:
            raise CaseRefused("The node reports no boot ID, so a reboot cannot be proven. Ask for another repair.")
        deadline = now + timedelta(hours=deadline_h)
        repair = case.repairs.create(
            kind=kind, asked_by=actor, asked_at=now, note=reason, link=link, deadline=deadline, came_from=case.state,
            boot_id=facts.boot_id,
        )  # fmt: skip
        evidence = {"repair": repair.pk, "kind": kind, "link": link, "deadline": deadline}
        case.move(CaseState.IN_REPAIR, actor=actor, reason=reason, now=now, evidence=evidence)


def answer_repair(
    case: NodeCase, *, answer: str, actor: str, reason: str, seen: str = "", now: datetime
) -> None:  # fmt: skip
    """Records the answer. A reboot that is not proven leaves the case in repair. Raises as `changed` does."""
    with changed(case, "answer", seen=seen) as facts:
        rows = case.repairs.filter(ended_at=None)
        repair = rows.get()
        is_proven = answer != RepairAnswer.DONE or repair.kind != RepairKind.REBOOT or facts.is_rebooted
        columns = {"answer": answer, "answered_by": actor, "answer_note": reason}
        rows.update(**columns, ended_at=now if is_proven else None)
        evidence = {"repair": repair.pk, "answer": answer}
        if not is_proven:
            case.record("answer", actor=actor, reason=reason, now=now, evidence=evidence)
        elif answer == RepairAnswer.DONE:
            case.move(CaseState.VALIDATING, actor=actor, reason=reason, now=now, evidence=evidence, repaired_at=now)
        else:
            case.move(CaseState(repair.came_from), actor=actor, reason=reason, now=now, evidence=evidence)


def record_validation(
    case: NodeCase, *, result: str, test: str, link: str = "", actor: str, reason: str, seen: str = "", now: datetime
) -> None:  # fmt: skip
    """Records the result of a test that a person ran. Unknown is no pass. Raises as `changed` does."""
    with changed(case, "validate", seen=seen):
        evidence = {"result": result, "test": test, "link": link}
        columns = {"passed": {"passed_at": now}, "failed": {"failed_at": now}}.get(result, {})
        sentence = f"Validation {result} ({test}): {reason}"
        case.take_validation(result, actor=actor, reason=sentence, now=now, evidence=evidence, **columns)


def override(case: NodeCase, *, actor: str, reason: str, seen: str = "", now: datetime) -> None:
    """Allows the release without a validation. The case shows it until one passes. Raises as `changed` does."""
    with changed(case, "override", seen=seen) as facts:
        case.write(overridden_at=now, overridden_by=actor, override_reason=reason)
        case.record("override", actor=actor, reason=reason, now=now, evidence={"why": facts.why_unvalidated})


@contextmanager
def changed(case: NodeCase, act: str, *, seen: str) -> Iterator[CaseFacts]:
    """Runs an act in one transaction, and gives the facts before it. `seen`: the state that the person saw; blank: any.

    :raises CaseRefused: when the case has another state than the person saw, moves meanwhile, or does not offer the act
    """
    if seen and seen != case.state:
        raise CaseRefused(state_now(case))
    facts = facts_of([case])[case.pk]
    if refusal := why_not(act, facts):
        raise CaseRefused(f"{refusal} {state_now(case)}")
    try:
        with transaction.atomic():
            yield facts
    except (LostRace, IntegrityError, Repair.DoesNotExist) as lost:
        raise CaseRefused(state_now(NodeCase.objects.get(pk=case.pk))) from lost


def state_now(case: NodeCase) -> str:
    """Returns a sentence with the state, who moved it and why."""
    since = f"{case.title.lower()} since {to_the_minute(case.state_since)}"
    return f"Case {case.pk} of {case.node_name}: {since}, by {case.moved_by}: {case.state_reason}"
