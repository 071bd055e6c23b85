"""Starts the steps that a person chose with a repair: a test once it is proven, and a release after a pass.

The person's choice is explicit, and the row of the repair has it. Everything that could forbid the step is read again
before its start, and again before the release writes to the node (`why_no_chosen_release`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import structlog
from django.db import transaction
from django.db.models import Q

from edges.idempotency import OWN_KEYS
from edges.transition_errors import LostRace
from fleet.freshness.cluster import load_cluster_freshness
from fleet.models import ClusterMode, Node
from gpu.cordons import SENTINEL_WORKS
from gpu.labels import SENTINEL_STATE
from health.lifecycle import FindingState
from health.models import Finding
from health.rules.base import Severity
from maintenance.automatic_cases import SINCE_OVER
from maintenance.chosen_steps import ChosenChoice, ChosenFacts, ChosenStep, choose_chosen_step, key_of
from maintenance.lifecycle import CHOICE_ENDED, ENGINE, RepairAnswer
from maintenance.models import AutomaticQuarantine, NodeCase, Repair
from maintenance.models.case import BLOCKED, CHANGED, LONGEST_REASON
from maintenance.queries import facts_of, other_owner, wanted_test
from maintenance.triggers import RULES, BreakerState, Mode
from operations import commands as operations
from operations.kinds import CASE_KINDS, LEAVING_KINDS, title_of
from operations.lifecycle import NodeProgress, OperationState
from operations.models import Operation, OperationNode
from operations.refusals import OperationRefused
from operations.restraints import freezes_of, stop_reason
from people.rights import Permission, people_with_permission
from wording.instants import to_the_minute

log = structlog.get_logger()
ENDING_A_CHOICE = sorted({*CASE_KINDS, *LEAVING_KINDS})  # and a test that somebody else starts
MOST_A_ROUND = 100  # choices in random order, so that waiting ones do not block others


def run_chosen_steps(*, now: datetime) -> None:
    """Takes the next step of every choice whose repair has ended. One query without one."""
    rows = list(Repair.objects.chosen().select_related("case__cluster", "case__finding").order_by("?")[:MOST_A_ROUND])
    facts, since = facts_of([repair.case for repair in rows]), _beside(rows)
    newest = dict(Repair.objects.filter(case__in=list(facts)).order_by("pk").values_list("case_id", "pk"))
    for repair in rows:
        case = facts[repair.case_id]
        its = _facts_of(repair, since[repair.pk], newest[repair.case_id], is_busy=case.is_busy, now=now)
        choice = choose_chosen_step(case, its, now=now)
        try:
            if choice.step == ChosenStep.END:
                _end(repair, choice, now=now)
            elif choice.step == ChosenStep.WAIT:
                Repair.objects.chosen().filter(pk=repair.pk).update(then_says=choice.reason[:LONGEST_REASON])
            else:
                _start(repair, choice.step, now=now)
        except LostRace as lost:  # a person ended the choice or moved the case; the next round reads it again
            log.info("a chosen step did not start", repair=repair.pk, reason=str(lost))


def _start(repair: Repair, step: ChosenStep, *, now: datetime) -> None:
    """Starts the operation in the name of whoever chose it, with its record. All of it or nothing.

    :raises LostRace: when the choice ended, the case moved, or the step was started already
    """
    case, by, key = repair.case, repair.asked_by, key_of(repair.pk, step)
    node = Node.objects.filter(cluster=case.cluster, uid=case.node_uid).first()
    if node is None:
        raise LostRace("The node is not seen in its cluster.")
    what = "Release after a pass" if step == ChosenStep.RELEASE else "Test after the repair"
    reason = f"{what}, chosen by {by} with the repair of {to_the_minute(repair.asked_at)}."
    options: dict[str, Any] = {"test": wanted_test(case)} if step == ChosenStep.TEST else {}
    started = Operation.objects.filter(asked_by=by, key=key)

    def claim() -> None:
        if not Repair.objects.chosen().filter(pk=repair.pk).update(then_says=""):  # locks it against an end
            raise LostRace("The choice has ended.")
        if not NodeCase.objects.filter(pk=case.pk, state=case.state, state_since=case.state_since).exists():
            raise LostRace("The case moved.")
        if started.exists():
            raise LostRace("It was started already.")
        evidence = {"repair": repair.pk, "chosen_by": by, "chosen_at": repair.asked_at}
        case.record(f"chosen-{step}", actor=by, reason=reason, now=now, evidence=evidence)

    if started.exists():  # such as by another worker: its key would count as a repeat
        raise LostRace("It was started already.")
    try:
        operations.start(
            case.cluster, step.value, [node], actor=by, reason=reason, options=options, key=key, claim=claim, now=now
        )
    except OperationRefused as refusal:
        _end(repair, ChosenChoice(ChosenStep.END, str(refusal), needs_person=True), now=now)


def _end(repair: Repair, choice: ChosenChoice, *, now: datetime) -> None:
    """Ends a choice, and notifies whoever decides the next step. A release that waits ends with it.

    :raises LostRace: when it ended already
    """
    with transaction.atomic():
        if not Repair.objects.filter(pk=repair.pk).end_chosen_steps(choice.reason, now=now):
            raise LostRace("The choice has ended.")
        _cancel_release(repair, choice.reason, now=now)
        if choice.reason:
            event, evidence = BLOCKED if choice.needs_person else CHANGED, {"repair": repair.pk}
            repair.case.record(
                CHOICE_ENDED, actor=ENGINE, reason=choice.reason, now=now, evidence=evidence, event=event
            )


def _cancel_release(repair: Repair, reason: str, *, now: datetime) -> None:
    """Cancels the chosen release unless it is at its node: there it fails before its write (`why_no_chosen_release`).

    :raises LostRace: when somebody else moved it first
    """
    own = Operation.objects.filter(asked_by=repair.asked_by, key=key_of(repair.pk, ChosenStep.RELEASE))
    release = own.in_progress().select_for_update().first()  # a worker that begins on the node waits for the lock
    if release is None:
        return
    waiting = release.nodes.unfinished()
    if release.state == OperationState.RUNNING:
        waiting = waiting.filter(state=NodeProgress.PENDING)
    if waiting.exists():
        operations.cancel(release, actor=ENGINE, reason=reason, now=now)


def why_no_chosen_release(operation: Operation, node_uid: str, *, now: datetime) -> str:
    """Returns why a chosen release may not write to its node. Blank: it may. No query for another operation.

    Releases that people start themselves are not concerned.
    """
    if not operation.key.startswith(OWN_KEYS):
        return ""
    rows = Repair.objects.filter(asked_by=operation.asked_by, then_release=True, case__node_uid=node_uid)
    its = (row for row in rows.select_related("case__cluster", "case__finding") if _is_release(operation, row))
    repair = next(its, None)
    if repair is None:
        return ""
    ended = (repair.then_says or "The choice was withdrawn.") if repair.then_ended_at else ""
    frozen = freezes_of(repair.case.cluster_id, [node_uid], now=now)
    other = _beside([repair])[repair.pk].other
    unseen = _why_unseen(repair.case, now=now)
    return ended or other or _why_barred(repair) or unseen or _why_held(repair.case) or frozen.get(node_uid, "")


def _is_release(operation: Operation, repair: Repair) -> bool:
    return operation.key == key_of(repair.pk, ChosenStep.RELEASE)


@dataclass
class StartedSince:
    """The operations on the node of a choice since it was made."""

    own: set[str] = field(default_factory=set)  # keys of those that were started for it
    other: str = ""  # the newest other one that leaves its case another way, as a sentence; blank: none


def _beside(repairs: Sequence[Repair]) -> dict[int, StartedSince]:
    """Returns the operations since each choice, by repair. One query. Logs, notes and the like do not count."""
    found = {repair.pk: StartedSince() for repair in repairs}
    if not repairs:
        return found
    rows = OperationNode.objects.of_kinds(*ENDING_A_CHOICE, "test").select_related("operation").order_by("pk")
    rows = rows.filter(
        node_uid__in={repair.case.node_uid for repair in repairs},
        operation__asked_at__gt=min(repair.asked_at for repair in repairs),
    )
    by_node: dict[str, list[Operation]] = {}
    for row in rows:
        by_node.setdefault(row.node_uid, []).append(row.operation)
    for repair in repairs:
        its = found[repair.pk]
        for operation in by_node.get(repair.case.node_uid, ()):
            if operation.asked_by == repair.asked_by and operation.key in _keys(repair):
                its.own.add(operation.key)
            elif operation.asked_at > repair.asked_at:
                its.other = f"{operation.asked_by} started another operation: {title_of(operation.kind)}."
    return found


def _keys(repair: Repair) -> list[str]:
    return [key_of(repair.pk, step) for step in (ChosenStep.TEST, ChosenStep.RELEASE)]


def _facts_of(repair: Repair, since: StartedSince, newest: int, *, is_busy: bool, now: datetime) -> ChosenFacts:
    """Returns the facts. While an operation is in progress nothing starts, so that what forbids it is not read."""
    return ChosenFacts(
        releases=repair.then_release,
        is_newest=repair.pk == newest,
        is_mended=repair.answer == RepairAnswer.DONE,
        other=since.other,
        is_tested=key_of(repair.pk, ChosenStep.TEST) in since.own,
        is_released=key_of(repair.pk, ChosenStep.RELEASE) in since.own,
        why_barred=_why_barred(repair),
        why_held="" if is_busy else _why_held(repair.case),
        why_blocked="" if is_busy else _why_blocked(repair.case, now=now),
    )


def _why_barred(repair: Repair) -> str:
    """Returns why the person's choice no longer counts. Blank: it does."""
    cluster, by = repair.case.cluster, repair.asked_by
    if cluster.mode != ClusterMode.OPERATE:
        return f"Quarterdeck may not change {cluster.name}: its mode is {cluster.mode}."
    if by not in people_with_permission(Permission.RUN, cluster_id=cluster.pk):
        return f"{by} may no longer run operations on {cluster.name}."
    return ""


def _why_held(case: NodeCase) -> str:
    """Returns why the node is not released: an open breaker, or an open sign of a fault. Blank: neither.

    A finding that is muted or being confirmed counts too: silence is no pass.
    """
    breakers = AutomaticQuarantine.objects.exclude(mode=Mode.OFF).filter(breaker=BreakerState.OPEN)
    if breaker := breakers.filter(pool__nodes__uid=case.node_uid).select_related("pool").first():
        return f"The breaker of pool {breaker.pool.name} is open: {breaker.breaker_reason}"
    signs = Q(severity=Severity.CRITICAL) | Q(rule__in=RULES - SINCE_OVER) | Q(pk=case.finding_id)
    its = Finding.objects.notified().exclude(state=FindingState.RESOLVED).filter(node__uid=case.node_uid)
    title = its.filter(signs, cluster=case.cluster_id).order_by("since").values_list("title", flat=True).first()
    return f"A finding of the node is open: {title}" if title else ""


def _why_unseen(case: NodeCase, *, now: datetime) -> str:
    is_fresh = load_cluster_freshness(case.cluster, now=now).is_fresh
    return "" if is_fresh else f"{case.cluster.name} is not seen now: its findings may be old."


def _why_blocked(case: NodeCase, *, now: datetime) -> str:
    """Returns why no operation starts on the node now: a stop, a freeze, another owner or old rows. Blank: one may."""
    if unseen := _why_unseen(case, now=now):
        return unseen
    node = case.cluster.nodes.filter(uid=case.node_uid).first()
    state = node.labels.get(SENTINEL_STATE, "") if node else ""
    if state in SENTINEL_WORKS:
        return f"NVSentinel works on the node ({state})."
    frozen = freezes_of(case.cluster_id, [case.node_uid], now=now).get(case.node_uid, "")
    return stop_reason(now=now) or frozen or other_owner(case.node_uid, now=now)
