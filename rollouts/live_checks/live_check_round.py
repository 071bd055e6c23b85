"""One round of a live check: ask the cluster, evaluate, and start the plan if a person asked for that and nothing bars
it.

Before the start nothing of the plan is in its cluster. A barred start leaves a draft, and the next start is checked
again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import datetime, timedelta

import structlog
from django.db import transaction

from edges.failures import failure_sentence
from edges.transition_errors import IllegalMove, LostRace
from kube import client
from people.models import AuditEntry, User
from people.rights import NotAllowed, Permission, require
from rollouts.checks import Check
from rollouts.commands.plan_start import LiveSeal, start
from rollouts.commands.refusals import Refusal
from rollouts.lifecycle import PlanState
from rollouts.live_checks.questions import Questions, facts_of, redacted_error
from rollouts.models import LiveCheck, Plan
from rollouts.models.transitions import record_event
from rollouts.preflight.live_checks import evaluate
from rollouts.preflight.live_checks.answers import LiveAnswer, LiveResult, blocking_checks
from rollouts.preflight.live_checks.facts import LiveFacts, PlanFacts
from rollouts.preflight.live_checks.latest import TAKEN_BY, is_too_late, live_on_page, why_no_live_check
from wording.durations import spell
from wording.numbers import count, either

log = structlog.get_logger()

ASKED_AGAIN_FOR = timedelta(seconds=8)  # an API server that is away for a moment need fail no start
AGAIN = timedelta(seconds=2)


def run_live_check(check_id: int, *, owner: str, clock: Callable[[], datetime]) -> None:
    row = LiveCheck.objects.in_force().select_related("plan__cluster").filter(pk=check_id).first()
    if row is None or not row.take_lease(owner=owner, now=clock()):
        return
    try:
        _run_check(row, clock=clock)
    except LostRace:
        log.info("a live check was taken over", plan=row.plan.mark)
    except Exception as bug:
        _record_end(row, f"{failure_sentence(bug)} The worker's log has more.", now=clock())
        raise


def _run_check(row: LiveCheck, *, clock: Callable[[], datetime]) -> None:
    plan = row.plan
    if reason := _why_not_asked(row, plan, now=clock()):
        _record_end(row, reason, now=clock())
        return
    answers, spec = _ask_cluster(plan, clock=clock)
    now = clock()
    may_come = any(answer.result is LiveResult.UNANSWERED and not answer.is_for_good for answer in answers)
    if may_come and now - row.asked_at < ASKED_AGAIN_FOR:
        row.put_off(next_look_at=now + AGAIN, now=now)
        return
    told = {
        "answers": [answer.written for answer in answers],
        "answered_at": now,
        "answered_revision": row.revision,
    }
    barred = blocking_checks(answers, is_overridden=bool(row.override_reason.strip()))
    if not row.is_start:
        _record_end(row, "", now=now, **told)
    elif barred:
        _record_end(row, _blocker_sentence(barred), now=now, **told)
    else:
        _start_plan(row, LiveSeal(answers, now, spec), told, now=now)


def _why_not_asked(row: LiveCheck, plan: Plan, *, now: datetime) -> str:
    if reason := why_no_live_check(plan):
        return reason
    if plan.revision != row.revision:
        return "The draft was edited since. Read it and check the cluster again."
    if row.is_start and is_too_late(row, now=now):
        return f"No worker began within {spell(TAKEN_BY)}, and the cluster may have changed since."
    return ""


def _ask_cluster(plan: Plan, *, clock: Callable[[], datetime]) -> tuple[list[LiveAnswer], dict[str, str]]:
    cluster = plan.cluster
    try:
        with closing(client.connect(cluster.kubeconfig, cluster.context)) as connection:
            questions = Questions(plan, connection, clock)
            return evaluate(facts_of(questions)), questions.spec
    except client.ClusterError as error:
        log.warning("a cluster cannot be asked", plan=plan.mark, cluster=cluster.name, error=str(error))
        return evaluate(LiveFacts(_facts_without_cluster(plan), silence=redacted_error(error))), {}


def _facts_without_cluster(plan: Plan) -> PlanFacts:
    cluster = plan.cluster
    return PlanFacts(cluster.name, cluster.uid, cluster.own_namespace, "", "", None, "", "", "")


def _start_plan(row: LiveCheck, live: LiveSeal, told: dict, *, now: datetime) -> None:
    """Starts the plan. The turn ends in the same transaction, so a worker that overslept its turn starts nothing."""
    plan = row.plan
    try:
        actor = User.objects.get(username=row.asked_by)
        require(actor, Permission.RUN, cluster_id=plan.cluster_id, where=f"cluster {plan.cluster.name}")
        with transaction.atomic():
            _lock_plan(plan)
            if not row.end(lease_until=now, **told):
                raise LostRace("Another worker runs this check.")
            start(
                plan,
                actor=actor,
                reason=row.reason,
                expected_revision=row.revision,
                override_reason=row.override_reason,
                key=row.key or f"live-{row.pk}-{row.epoch}",
                live=live,
                now=now,
            )
    except (IllegalMove, NotAllowed, Refusal, User.DoesNotExist) as refusal:
        _record_end(row, str(refusal), now=now, **told)


def _lock_plan(plan: Plan) -> None:
    """Locks the plan's row before the check's row, in the order of requests."""
    Plan.objects.select_for_update(no_key=True).only("pk").get(pk=plan.pk)


def _blocker_sentence(barred: Sequence[Check]) -> str:
    """Returns the first blocker and the number of others."""
    more = (
        f"; {count(len(barred) - 1, 'more answer')} also {either(len(barred) - 1, 'prevents', 'prevent')} it"
        if barred[1:]
        else ""
    )
    return f"{barred[0].sentence.rstrip('.')}{more}."


def _record_end(row: LiveCheck, reason: str, *, now: datetime, **told: object) -> None:
    """Records the result, also where a start failed."""
    plan = row.plan
    with transaction.atomic():
        _lock_plan(plan)
        if not row.end(outcome=reason[:1000], lease_until=now, **told):
            return
        if not row.is_start:
            words = live_on_page(plan)
            record_event(
                plan=plan, what="note", was="", to="live-check", now=now, actor="engine",
                reason=words.sentence if words else reason,
            )  # fmt: skip
            return
        says = f"Not started: {reason} Nothing in the cluster was changed. Correct this, then start again."
        Plan.objects.filter(pk=plan.pk, state=PlanState.DRAFT).update(waiting_for=says[:1000])
        AuditEntry.record(plan.mark, verb="start-refused", actor=row.asked_by, reason=reason[:1000], now=now)
        record_event(plan=plan, what="note", was="", to="not-started", now=now, actor="engine", reason=reason)
