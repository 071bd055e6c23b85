"""Commands of people on cases. Operations quarantine, drain and release the node."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from uuid import uuid4

from django.db import IntegrityError, transaction

from edges.transition_errors import LostRace
from fleet.models import Node
from health.models import Finding
from maintenance.actors import ACTORS
from maintenance.actors.person import Person
from maintenance.acts import why_not
from maintenance.lifecycle import CHOICE_ENDED, CaseFacts, CaseState, RepairAnswer, RepairKind
from maintenance.models import NodeCase, Repair
from maintenance.models.case import OPENED
from maintenance.queries import facts_of, other_owner, repair_scope, why_no_validation
from maintenance.refusals import CaseRefused, UnknownRequest
from maintenance.repair_logs import LOSING_LOGS, WAIT_FOR_LOGS
from maintenance.repair_offers import why_no_reboot
from operations.test_jobs.node_tests import NAMED, OWN
from wording.instants import to_the_minute
from wording.lists import names


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
            case.record("opened", actor=actor, reason=reason, now=now, evidence=evidence, event=OPENED)
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
    case: NodeCase, *, kind: str, by: str = Person.key, link: str = "", deadline_h: int = 24, then_test: bool = False,
    then_release: bool = False, actor: str, reason: str, seen: str = "", now: datetime,
) -> None:  # fmt: skip
    """Asks an actor for a repair. A worker sends the request. Raises as `changed` does.

    `then_test`: a test starts once the repair is proven. `then_release`: after a pass the node is released.

    :raises CaseRefused: also when the actor cannot be asked, another owner changes the node, or two reboots did not
        mend it (lifecycle R7)
    """
    with changed(case, "repair", seen=seen) as facts:
        refuse_unable(case, RepairKind(kind), by, now=now)
        if then_release and not then_test:
            raise CaseRefused("A release after the repair needs the test after it. Choose both, or neither.")
        if kind == RepairKind.REBOOT and (why := why_no_reboot(case, boot_id=facts.boot_id)):
            raise CaseRefused(why)
        deadline = now + timedelta(hours=deadline_h)
        repair = case.repairs.create(
            by=by, kind=kind, request=str(uuid4()), asked_by=actor, asked_at=now, note=reason, link=link,
            deadline=deadline, came_from=case.state, boot_id=facts.boot_id, next_look_at=now, lease_until=now,
            then_test=then_test, then_release=then_release,
            says=WAIT_FOR_LOGS if by == Person.key and kind in LOSING_LOGS else "",
        )  # fmt: skip
        evidence = {"repair": repair.pk, "kind": kind, "by": by, "link": link, "deadline": deadline}
        evidence |= {"then": ["test", *(["release"] if then_release else [])]} if then_test else {}
        case.move(CaseState.IN_REPAIR, actor=actor, reason=reason, now=now, evidence=evidence)
        Repair.queue_round(repair.pk)


def refuse_unable(case: NodeCase, kind: RepairKind, by: str, *, now: datetime) -> None:
    """:raises CaseRefused: when the actor cannot be asked for this repair, or another owner changes the node"""
    its = ACTORS[by]
    if kind not in its.kinds:
        raise CaseRefused(f"{its.title} does not do this repair. It does: {names(sorted(its.kinds))}.")
    if reason := its.why_not(repair_scope(case)):
        raise CaseRefused(reason)
    if reason := other_owner(case.node_uid, now=now):
        raise CaseRefused(f"{reason} Ask again when that change ended.")


def answer_repair(
    case: NodeCase, *, answer: str, request: str = "", ticket: str = "", link: str = "", actor: str, reason: str,
    seen: str = "", now: datetime,
) -> None:  # fmt: skip
    """Records the answer. A reboot that is not proven leaves the case in repair. Raises as `changed` does.

    :raises UnknownRequest: when no repair has this id
    :raises CaseRefused: also when the repair of this id is another case's, has an answer, or is over
    """
    if request:
        more = {"ticket": ticket, "link": link}
        refuse_answer(case, request, answer=answer, actor=actor, reason=reason, more=more, now=now)
    with changed(case, "answer", seen=seen) as facts:
        repair = case.repairs.open().filter(asked_at__lte=case.state_since).get()  # not one asked since
        if request and repair.request != request:
            raise LostRace("The case waits for another repair now.")
        is_proven = answer != RepairAnswer.DONE or repair.kind != RepairKind.REBOOT or facts.is_rebooted
        columns = {"answer": answer, "answered_by": actor, "answer_note": reason, "says": ""}
        columns |= {name: value for name, value in {"ticket": ticket, "link": link}.items() if value}
        same = case.repairs.open().filter(pk=repair.pk, answer=repair.answer)
        if not same.update(**columns, ended_at=now if is_proven else None):
            raise LostRace("The repair was answered at the same time.")
        evidence = {"repair": repair.pk, "answer": answer, "ticket": ticket, "link": link}
        if not is_proven:
            case.record("answer", actor=actor, reason=reason, now=now, evidence=evidence)
        elif answer == RepairAnswer.DONE:
            case.move(CaseState.VALIDATING, actor=actor, reason=reason, now=now, evidence=evidence, repaired_at=now)
        else:
            case.move(CaseState(repair.came_from), actor=actor, reason=reason, now=now, evidence=evidence)


def refuse_answer(
    case: NodeCase, request: str, *, answer: str, actor: str, reason: str, more: dict[str, str], now: datetime
) -> None:
    """Refuses an answer to another repair than the one that the case waits for. A late answer stays in its history.

    :raises UnknownRequest: when no repair has this id
    :raises CaseRefused: when it is another case's, or has an answer
    """
    repair = Repair.objects.filter(request=request).first()
    if repair is None:
        raise UnknownRequest(f"No repair has the request id {request}. Use the one of the request that you got.")
    if repair.case_id != case.pk:
        raise CaseRefused(f"Request {request} does not belong to case {case.pk}. Answer at the request's own address.")
    if repair.ended_at is None and not repair.answer:
        return
    if repair.answered_by:
        raise CaseRefused(f"{repair.answered_by} answered this repair before: {repair.answer}. Nothing is changed.")
    with transaction.atomic():
        if Repair.objects.filter(pk=repair.pk, late_answer="").update(late_answer=answer):
            evidence = {"repair": repair.pk, "answer": answer} | more
            case.record("late-answer", actor=actor, reason=reason, now=now, evidence=evidence)
    ended = f"This repair ended {to_the_minute(repair.ended_at or now)} as {repair.answer or 'unanswered'}."
    raise CaseRefused(f"{ended} The answer is in the history of the case, and changes nothing.")


def record_validation(
    case: NodeCase, *, result: str, test: str, link: str = "", actor: str, reason: str, seen: str = "", now: datetime
) -> str:  # fmt: skip
    """Records the result of a test that a person ran. Raises as `changed` does.

    An unknown result is no pass. Returns why a pass does not count, such as one of another test; blank: it counts.
    """
    with changed(case, "validate", seen=seen):
        why = why_no_validation(case, NAMED.get(test.strip().casefold(), OWN)) if result == "passed" else ""
        evidence = {"result": result, "test": test, "link": link}
        columns = {"passed": {"passed_at": now}, "failed": {"failed_at": now}}.get(result, {})
        if why:
            sentence = f"Evidence only, passed ({test}): {why} {reason}"
            case.take_validation("unknown", actor=actor, reason=sentence, now=now, evidence=evidence)
        else:
            sentence = f"Validation {result} ({test}): {reason}"
            case.take_validation(result, actor=actor, reason=sentence, now=now, evidence=evidence, **columns)
    return why


def override(case: NodeCase, *, actor: str, reason: str, seen: str = "", now: datetime) -> None:
    """Allows the release without a validation. The case shows it until one passes. Raises as `changed` does."""
    with changed(case, "override", seen=seen) as facts:
        case.write(overridden_at=now, overridden_by=actor, override_reason=reason)
        case.record("override", actor=actor, reason=reason, now=now, evidence={"why": facts.why_unvalidated})


def take_over(case: NodeCase, *, actor: str, reason: str, seen: str = "", now: datetime) -> None:
    """Ends the automatic and chosen steps of the case: the person does the next ones. Raises as `changed` does."""
    with changed(case, "take-over", seen=seen):
        if case.is_automatic:
            case.hand_over(actor, actor=actor, reason=reason, now=now)
        says = f"{actor} took the case over: {reason}"
        if Repair.objects.filter(case=case).end_chosen_steps(says, now=now):
            case.record(CHOICE_ENDED, actor=actor, reason=reason, now=now)


@contextmanager
def changed(case: NodeCase, act: str, *, seen: str) -> Iterator[CaseFacts]:
    """Runs an act in one transaction, and gives the facts before it.

    `seen`: the state that the person saw, with its begin or without; blank: any. The same state may be about another
    repair by now, so pages send the begin.

    :raises CaseRefused: when the case has another state than the person saw, moves meanwhile, or does not offer the act
    """
    if seen and seen not in (case.state, case.state_version):
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
